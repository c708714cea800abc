/* Thin singular value decomposition a = u diag(s) vt by one-sided Jacobi rotations of the columns of the taller of a and a'.
   u (m x k), s (k), vt (k x n), k = min(m, n); w needs (m + n) k entries. s decreases. */
static void @svd(const double *a, double *u, double *s, double *vt, double *w, int m, int n) {
    const bool wide = m < n;
    const int rows = wide ? n : m, k = wide ? m : n;
    double largest_entry = 0; /* the squares of entries of size about one neither overflow nor vanish */
    for (int i = 0; i < m * n; ++i) {
        largest_entry = fabs(a[i]) > largest_entry ? fabs(a[i]) : largest_entry;
    }
    int exponent = 0;
    if (largest_entry > 0 && largest_entry <= DBL_MAX) {
        frexp(largest_entry, &exponent);
    }
    const double half = ldexp(1.0, -(exponent / 2)), rest = ldexp(1.0, exponent / 2 - exponent); /* a power of two in two factors */
    double *g = w, *v = w + rows * k; /* column c of the tall matrix is g[c * rows ...], of the rotations v[c * k ...] */
    for (int c = 0; c < k; ++c) {
        for (int r = 0; r < rows; ++r) {
            g[c * rows + r] = (wide ? a[c * n + r] : a[r * n + c]) * half * rest;
        }
        for (int r = 0; r < k; ++r) {
            v[c * k + r] = r == c ? 1.0 : 0.0;
        }
    }
    const double least = DBL_EPSILON * sqrt((double)rows); /* the cosine of two columns that are orthogonal but for rounding */
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < 60; ++sweep) {
        rotated = false;
        for (int c = 0; c < k; ++c) { /* squared lengths, kept up to date within a sweep */
            s[c] = @dot(g + c * rows, g + c * rows, rows);
        }
        for (int p = 0; p < k - 1; ++p) {
            for (int q = p + 1; q < k && s[p] > 0; ++q) {
                if (!(s[q] > 0)) {
                    continue;
                }
                const double pq = @dot(g + p * rows, g + q * rows, rows);
                if (!(fabs(pq) > least * sqrt(s[p]) * sqrt(s[q]))) {
                    continue;
                }
                rotated = true;
                const double z = (s[q] - s[p]) / (2 * pq);
                const double t = (z >= 0 ? 1.0 : -1.0) / (fabs(z) + sqrt(1 + z * z));
                s[p] = fmax(s[p] - t * pq, 0);
                s[q] = fmax(s[q] + t * pq, 0);
                const double cosine = 1 / sqrt(1 + t * t), sine = cosine * t;
                for (int r = 0; r < rows; ++r) {
                    const double x = g[p * rows + r], y = g[q * rows + r];
                    g[p * rows + r] = cosine * x - sine * y;
                    g[q * rows + r] = sine * x + cosine * y;
                }
                for (int r = 0; r < k; ++r) {
                    const double x = v[p * k + r], y = v[q * k + r];
                    v[p * k + r] = cosine * x - sine * y;
                    v[q * k + r] = sine * x + cosine * y;
                }
            }
        }
    }
    for (int c = 0; c < k; ++c) {
        double total = 0;
        for (int r = 0; r < rows; ++r) {
            total += g[c * rows + r] * g[c * rows + r];
        }
        s[c] = sqrt(total);
    }
    for (int c = 0; c < k; ++c) { /* selection by size; a column of length zero is left at zero */
        int largest = c;
        for (int d = c + 1; d < k; ++d) {
            if (s[d] > s[largest]) {
                largest = d;
            }
        }
        for (int r = 0; r < rows && largest != c; ++r) {
            const double t = g[c * rows + r];
            g[c * rows + r] = g[largest * rows + r];
            g[largest * rows + r] = t;
        }
        for (int r = 0; r < k && largest != c; ++r) {
            const double t = v[c * k + r];
            v[c * k + r] = v[largest * k + r];
            v[largest * k + r] = t;
        }
        const double t = s[c];
        s[c] = s[largest];
        s[largest] = t;
        for (int r = 0; r < rows; ++r) {
            const double x = s[c] > 0 ? g[c * rows + r] / s[c] : 0.0;
            if (wide) {
                vt[c * n + r] = x;
            } else {
                u[r * k + c] = x;
            }
        }
        for (int r = 0; r < k; ++r) {
            if (wide) {
                u[r * k + c] = v[c * k + r];
            } else {
                vt[c * n + r] = v[c * k + r];
            }
        }
    }
    for (int c = 0; c < k; ++c) {
        s[c] = ldexp(s[c], exponent);
    }
}
