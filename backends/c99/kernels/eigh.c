/* y = a x for the symmetric a with rows and columns `first` to n - 1, of which the upper triangle is kept, after a -= u q' + q u'. */
static void @symmetric_step(double *restrict a, int n, int first, const double *restrict u, const double *restrict q,
                            const double *restrict x, double *restrict y) {
    for (int i = first; i < n; ++i) {
        y[i] = 0.0;
    }
    for (int i = first; i < n; ++i) {
        double *row = a + i * n;
        const double ui = u[i], qi = q[i], xi = x[i];
        row[i] -= 2 * ui * qi;
        double s[8] = {0};
        int j = i + 1;
        for (; j + 8 <= n; j += 8) {
            for (int k = 0; k < 8; ++k) {
                const double entry = row[j + k] - (ui * q[j + k] + qi * u[j + k]);
                row[j + k] = entry;
                s[k] += entry * x[j + k];
                y[j + k] += entry * xi;
            }
        }
        for (; j < n; ++j) {
            const double entry = row[j] - (ui * q[j] + qi * u[j]);
            row[j] = entry;
            s[0] += entry * x[j];
            y[j] += entry * xi;
        }
        y[i] += row[i] * xi + (((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])));
    }
}

/* a = H t H with reflections H and a tridiagonal t: diagonal d, beside it e. Row k of a keeps u of reflection k; space for 2 n. */
static void @tridiagonal(double *a, double *d, double *e, double *scales, double *space, int n) {
    double *q = space, *y = space + n;
    const double *u = y;
    for (int j = 0; j < n; ++j) {
        q[j] = y[j] = 0.0;
    }
    for (int k = 0; k < n; ++k) {
        double *row = a + k * n;
        for (int j = k; j < n; ++j) { /* the last update reaches this row first, then the others in one pass */
            row[j] -= u[k] * q[j] + q[k] * u[j];
        }
        d[k] = row[k];
        if (k + 1 == n) {
            break;
        }
        scales[k] = @reflection(row + k + 1, n - k - 1, &e[k]);
        @symmetric_step(a, n, k + 1, u, q, row, y);
        const double share = 0.5 * scales[k] * scales[k] * @dot(y + k + 1, row + k + 1, n - k - 1);
        for (int j = k + 1; j < n; ++j) {
            q[j] = scales[k] * y[j] - share * row[j];
        }
        u = row;
    }
}

/* An implicit QL step on rows l to m of the tridiagonal matrix, with Wilkinson's shift; the sweep is recorded, its size handed back. */
static int @ql_step(double *d, double *e, int l, int m, double *turns) {
    const double z = (d[l + 1] - d[l]) / (2 * e[l]), root = sqrt(1 + z * z);
    double g = d[m] - d[l] + e[l] / (z + (z >= 0 ? root : -root));
    double sine = 1, cosine = 1, p = 0;
    int i = m - 1, used = 2;
    for (; i >= l; --i) {
        const double f = sine * e[i], b = cosine * e[i], r = @rotation(g, f, &cosine, &sine);
        e[i + 1] = r;
        if (r == 0) {
            d[i + 1] -= p;
            break;
        }
        g = d[i + 1] - p;
        const double t = (d[i] - g) * sine + 2 * cosine * b;
        p = sine * t;
        d[i + 1] = g + p;
        g = cosine * t - b;
        turns[used++] = cosine;
        turns[used++] = sine;
    }
    if (i < l) {
        d[l] -= p;
        e[l] = g;
    }
    e[m] = 0.0;
    turns[0] = m;
    turns[1] = (used - 2) / 2;
    return used;
}

/* Eigenvalues w (increasing) and eigenvectors v (columns) of a symmetric a (n x n, used up), of which the upper triangle is read: reduction to
   a tridiagonal matrix, then QL steps (Golub & Van Loan, Matrix Computations, 8.3). work needs 100 n entries. */
static void @eigh(double *a, double *w, double *v, double *work, int n) {
    int exponent;
    if (!@exponent_of(a, n * n, &exponent)) {
        for (int i = 0; i < n * n; ++i) {
            w[i / n] = v[i] = NAN;
        }
        return;
    }
    const double half = ldexp(1.0, -(exponent / 2)), rest = ldexp(1.0, exponent / 2 - exponent); /* a power of two in two factors */
    for (int i = 0; i < n * n; ++i) {
        a[i] *= half * rest;
    }
    double *e = work, *scales = e + n, *strip = scales + n, *turns = strip + @STRIP * n;
    const int room = 64 * n;
    @tridiagonal(a, w, e, scales, turns, n);
    e[n - 1] = 0.0;
    @product_of_reflections(v, n, n, a, scales, n - 1, 1);
    int used = 0, lo = n, hi = 0;
    for (int l = 0, looks = 0; l < n; ++looks) {
        int m = l;
        while (m < n - 1 && fabs(e[m]) > DBL_EPSILON * (fabs(w[m]) + fabs(w[m + 1])) && fabs(e[m]) > 1e-150) {
            ++m;
        }
        if (m == l || looks > 60 * n) {
            ++l;
            continue;
        }
        if (used + 2 * (m - l) + 2 > room) {
            @rotate_rows(v, n, turns, used, lo, hi, -1, strip);
            used = hi = 0;
            lo = n;
        }
        used += @ql_step(w, e, l, m, turns + used);
        lo = l < lo ? l : lo;
        hi = m > hi ? m : hi;
    }
    @rotate_rows(v, n, turns, used, lo, hi, -1, strip);
    for (int c = 0; c < n; ++c) {
        int least = c;
        for (int d = c + 1; d < n; ++d) {
            if (w[d] < w[least]) {
                least = d;
            }
        }
        const double t = w[least];
        w[least] = w[c];
        w[c] = ldexp(t, exponent);
        if (least != c) {
            @swap_rows(v, n, c, least);
        }
    }
    for (int r = 0; r < n; ++r) { /* from rows to columns */
        for (int c = 0; c < r; ++c) {
            const double x = v[r * n + c];
            v[r * n + c] = v[c * n + r];
            v[c * n + r] = x;
        }
    }
}
