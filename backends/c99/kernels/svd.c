/* g (k x n, k <= n) to a lower bidiagonal matrix with diagonal d and e below it, by reflections from the right, u in row i of g from column i
   on, and from the left, u in row i of `left` (k x k) from column i + 1 on; space for 2 n. One pass over what is left of g a step. */
static void @bidiagonal(double *restrict g, double *restrict left, double *d, double *e, double *scales, double *left_scales,
                        double *restrict space, int k, int n) {
    double *y = space, *sum = space + n; /* of the last reflection from the left: its vector v times g, not yet taken off */
    const double *v = NULL;
    double scale = 0;
    for (int i = 0; i < k; ++i) {
        double *u = g + i * n;
        for (int j = i; j < n && v; ++j) {
            u[j] -= scale * v[i] * y[j];
        }
        scales[i] = @reflection(u + i, n - i, &d[i]);
        if (i + 1 == k) {
            return;
        }
        double *column = left + i * k;
        for (int r = i + 1; r < k; ++r) {
            double *row = g + r * n;
            if (v) {
                const double share = scale * v[r];
                for (int j = i; j < n; ++j) {
                    row[j] -= share * y[j];
                }
            }
            const double along = scales[i] * @dot(row + i, u + i, n - i);
            const double entry = row[i] - along;
            column[r] = entry;
            if (r == i + 1) {
                for (int j = i + 1; j < n; ++j) {
                    row[j] -= along * u[j];
                    sum[j] = 0.0;
                }
                continue;
            }
            for (int j = i + 1; j < n; ++j) {
                row[j] -= along * u[j];
                sum[j] += entry * row[j];
            }
        }
        const double first = column[i + 1], *second = g + (i + 1) * n;
        v = column;
        scale = left_scales[i] = @reflection(column + i + 1, k - i - 1, &e[i]);
        const double divisor = scale != 0 ? 1 / (first - e[i]) : 0.0;
        for (int j = i + 1; j < n; ++j) {
            y[j] = second[j] + divisor * sum[j];
        }
    }
}

/* The smaller singular value of (f g; 0 h), as LAPACK's dlas2 has it. */
static double @smaller_of_two(double f, double g, double h) {
    const double least = fmin(fabs(f), fabs(h)), most = fmax(fabs(f), fabs(h)), beside = fabs(g);
    if (least == 0) {
        return 0.0;
    }
    const double over = 1 + least / most, under = (most - least) / most;
    if (beside < most) {
        const double r = (beside / most) * (beside / most);
        return least * (2 / (sqrt(over * over + r) + sqrt(under * under + r)));
    }
    const double r = most / beside;
    return 2 * least * r / (sqrt(1 + over * r * over * r) + sqrt(1 + under * r * under * r));
}

/* An implicit QR step on rows l to m of the upper bidiagonal matrix (Golub & Van Loan, 8.6), with the shift zero where the matrix is singular;
   the sweeps of both sides are recorded, their size handed back. */
static int @qr_step(double *d, double *e, int l, int m, double least, double *left, double *right) {
    double shift = @smaller_of_two(d[m - 1], e[m - 1], d[m]);
    for (int i = l; i <= m; ++i) {
        shift = fabs(d[i]) > least ? shift : 0.0;
    }
    double f = shift > 0 ? (fabs(d[l]) - shift) * ((d[l] > 0 ? 1.0 : -1.0) + shift / d[l]) : d[l], g = e[l];
    int used = 2;
    for (int i = l; i < m; ++i) {
        double cosine, sine;
        const double r = @rotation(f, g, &cosine, &sine);
        if (i > l) {
            e[i - 1] = r;
        }
        right[used] = cosine;
        right[used + 1] = sine;
        f = cosine * d[i] + sine * e[i];
        e[i] = cosine * e[i] - sine * d[i];
        g = sine * d[i + 1];
        d[i + 1] *= cosine;
        d[i] = @rotation(f, g, &cosine, &sine);
        left[used] = cosine;
        left[used + 1] = sine;
        f = cosine * e[i] + sine * d[i + 1];
        d[i + 1] = cosine * d[i + 1] - sine * e[i];
        if (i + 1 < m) {
            g = sine * e[i + 1];
            e[i + 1] *= cosine;
        }
        used += 2;
    }
    e[m - 1] = f;
    left[0] = right[0] = l;
    left[1] = right[1] = m - l;
    return used;
}

/* Thin singular value decomposition a = u diag(s) vt: bidiagonal reduction of the wider of a and a', then QR steps. u (m x k), s (k,
   decreasing), vt (k x n), k = min(m, n); work needs (m + n + 100) k + 2 max(m, n) entries. */
static void @svd(const double *a, double *u, double *s, double *vt, double *work, int m, int n) {
    const bool wide = m < n;
    const int length = wide ? n : m, k = wide ? m : n;
    int exponent;
    if (!@exponent_of(a, m * n, &exponent)) {
        for (int i = 0; i < k; ++i) {
            s[i] = NAN;
        }
        for (int i = 0; i < m * k; ++i) {
            u[i] = NAN;
        }
        for (int i = 0; i < k * n; ++i) {
            vt[i] = NAN;
        }
        return;
    }
    const double half = ldexp(1.0, -(exponent / 2)), rest = ldexp(1.0, exponent / 2 - exponent); /* a power of two in two factors */
    double *g = work, *left = g + k * length, *e = left + k * k, *scales = e + k, *left_scales = scales + k;
    double *strip = left_scales + k, *turns = strip + @STRIP * k, *left_turns = turns + 32 * k, *space = left_turns + 32 * k;
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            g[wide ? i * n + j : j * m + i] = a[i * n + j] * half * rest;
        }
    }
    @bidiagonal(g, left, s, e, scales, left_scales, space, k, length);
    double *longer = wide ? vt : u, *shorter = wide ? u : vt; /* rows of singular vectors; those in u become columns in the end */
    @product_of_reflections(longer, k, length, g, scales, k, 0);
    @product_of_reflections(shorter, k, k, left, left_scales, k - 1, 1);
    double norm = 0;
    for (int i = 0; i < k; ++i) {
        norm = fmax(norm, fabs(s[i]) + (i + 1 < k ? fabs(e[i]) : 0.0));
    }
    const double least = DBL_EPSILON * norm;
    int used = 0, lo = k, hi = 0;
    for (int end = k - 1, looks = 0; end > 0; ++looks) {
        if (fabs(e[end - 1]) <= least || looks > 60 * k) {
            --end;
            continue;
        }
        int l = end - 1;
        while (l > 0 && fabs(e[l - 1]) > least) {
            --l;
        }
        if (used + 2 * (end - l) + 2 > 32 * k) {
            @rotate_rows(longer, length, left_turns, used, lo, hi, 1, strip);
            @rotate_rows(shorter, k, turns, used, lo, hi, 1, strip);
            used = hi = 0;
            lo = k;
        }
        used += @qr_step(s, e, l, end, least, left_turns + used, turns + used);
        lo = l < lo ? l : lo;
        hi = end > hi ? end : hi;
    }
    @rotate_rows(longer, length, left_turns, used, lo, hi, 1, strip);
    @rotate_rows(shorter, k, turns, used, lo, hi, 1, strip);
    for (int c = 0; c < k; ++c) {
        int largest = c;
        for (int r = c + 1; r < k; ++r) {
            if (fabs(s[r]) > fabs(s[largest])) {
                largest = r;
            }
        }
        const double t = s[largest];
        s[largest] = s[c];
        s[c] = ldexp(fabs(t), exponent);
        if (largest != c) {
            @swap_rows(longer, length, c, largest);
            @swap_rows(shorter, k, c, largest);
        }
        for (int r = 0; r < k && t < 0; ++r) {
            shorter[c * k + r] = -shorter[c * k + r];
        }
    }
    memcpy(work, u, sizeof(double) * (size_t)(m * k));
    for (int r = 0; r < m; ++r) {
        for (int c = 0; c < k; ++c) {
            u[r * k + c] = work[c * m + r];
        }
    }
}
