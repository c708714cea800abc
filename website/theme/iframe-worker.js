// A worker in a hidden frame, for pages opened as files: browsers start no worker from file://, and the search runs in one.
"use strict";
if (location.protocol === "file:") {
  const prelude = `
    postMessage = (data) => parent.postMessage(data, "*");
    importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((resolve) => {
      const script = document.createElement("script");
      script.src = url;
      script.onload = resolve;
      document.body.appendChild(script);
    })), Promise.resolve());`;
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.body.appendChild(Object.assign(document.createElement("iframe"), { hidden: true }));
      const inner = this.frame.contentWindow;
      window.addEventListener("message", (event) => {
        if (event.source !== inner) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      this.loaded = new Promise((resolve) => { this.resolve = resolve; });
      inner.document.open();
      inner.document.write(`<html><body><script>${prelude}<\/script><script src="${url}"><\/script></body></html>`);
      inner.document.close();
      inner.onload = () => this.resolve();
    }
    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() { this.frame.remove(); }
  };
}
