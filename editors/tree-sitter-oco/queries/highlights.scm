; Colours of model files. A name takes the last pattern that matches it.

(name) @variable
(comment) @comment
(text) @string
(number) @number
(integer) @number
(decimal) @number

["model" "horizon" "index" "param" "decision" "stream" "context" "state" "predict" "let" "minimize" "maximize" "subject" "measure"
 "feedback" "assume" "using"] @keyword

["T" "average" "bandit" "delayed" "dynamic" "each" "full" "gradient" "iid" "in" "mean" "of" "on" "penalty" "regret" "round" "rounded"
 "rounds" "start" "static" "to" "total" "two_point" "unknown" "with"] @keyword.modifier

["+" "-" "*" "/" "@" "%" "**" ".." "<=" ">=" "==" "=" "~"] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ":" "."] @punctuation.delimiter

(model_statement name: (name) @module)
(param_statement name: (name) @constant)
(constraint label: (name) @label)
(setting name: (name) @property)
(option name: (name) @property)
(key) @property
(algorithm) @function.builtin
(call function: (name) @function.builtin)
(decision_statement (name) @type .)
(distribution (name) @type)
