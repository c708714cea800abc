" Written by oco.dsl.text.editor from the words of the language.
if exists("b:current_syntax")
  finish
endif
syntax match ocoOperator ;\v\.\.|\*\*|\<\=|\>\=|\=\=|[-+*/@~=]|\.T%(<|>);
syntax match ocoFunction ;\v%(<|>)[A-Za-z][A-Za-z0-9_]*(\()@=;
syntax match ocoNumber ;\v%(([A-Za-z0-9_.])@<!|(\.\.)@<=)([0-9]+(\.(\.)@![0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?;
syntax match ocoKeyword ;\v([A-Za-z0-9_\])])@<=\s+(iid|in|rounded|start|unknown|with)(\s|$)@=;
syntax match ocoLabel ;\v^\s+([A-Za-z][A-Za-z0-9_]*)(\s*:)@=;
syntax match ocoKeyword ;\v(horizon)@<=\s+(T)%(<|>);
syntax match ocoKeyword ;\v(subject)@<=\s+(to)%(<|>);
syntax match ocoKeyword ;\v(feedback)@<=\s+(full|gradient|two_point|bandit)%(<|>)%(\s+(delayed)%(<|>))?;
syntax match ocoKeyword ;\v(iid)@<=\s+(mean)%(<|>);
syntax match ocoKeyword ;\v%(<|>)(static|dynamic)\s+(regret)%(<|>);
syntax match ocoKeyword ;\v(,)@<=\s+(penalty)%(<|>);
syntax match ocoKeyword ;\v\s+(in)\s+[0-9.]+\%\s+(of)\s+(rounds)%(<|>);
syntax match ocoKeyword ;\v\s+(in)\s+(total)%(<|>);
syntax match ocoKeyword ;\v%(<|>)(on)\s+(average)%(<|>);
syntax match ocoKeyword ;\v%(<|>)(each)\s+(round)%(<|>);
syntax match ocoError ;\v%(<|>)(prev)%(<|>)(\s*\()@!;
syntax match ocoStatement ;\v^\s*(assume|context|decision|feedback|horizon|index|let|maximize|measure|minimize|model|param|predict|state|stream|subject|using)%(<|>);
syntax match ocoString ;\v"[^"\n]*";
syntax match ocoComment ;\v#.*$;
highlight default link ocoComment Comment
highlight default link ocoString String
highlight default link ocoStatement Statement
highlight default link ocoError Error
highlight default link ocoKeyword Keyword
highlight default link ocoLabel Label
highlight default link ocoNumber Number
highlight default link ocoFunction Function
highlight default link ocoOperator Operator
let b:current_syntax = "oco"
