"""The exact penalized step: argmin over x in X of <c, x - y> + alpha |x - y|^2 + sum_n Q_n [g_n(x)]_+."""
