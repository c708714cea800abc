"""Learners by key that survive their process, behind HTTP or standard input: `oco serve` and `oco pipe`."""
