/* Eigenvalues w (increasing) and eigenvectors v (columns) of a symmetric a (n x n, used up) by cyclic Jacobi rotations. */
static void @eigh(double *a, double *w, double *v, int n) {
    for (int i = 0; i < n * n; ++i) {
        v[i] = i % (n + 1) == 0 ? 1.0 : 0.0;
    }
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < 60; ++sweep) {
        rotated = false;
        for (int p = 0; p < n - 1; ++p) {
            for (int q = p + 1; q < n; ++q) {
                const double pq = a[p * n + q];
                if (!(fabs(pq) > 1e-17 * (fabs(a[p * n + p]) + fabs(a[q * n + q])))) {
                    continue;
                }
                rotated = true;
                const double z = (a[q * n + q] - a[p * n + p]) / (2 * pq);
                const double t = (z >= 0 ? 1.0 : -1.0) / (fabs(z) + sqrt(1 + z * z));
                const double cosine = 1 / sqrt(1 + t * t), sine = cosine * t;
                for (int r = 0; r < n; ++r) {
                    const double x = a[r * n + p], y = a[r * n + q];
                    a[r * n + p] = cosine * x - sine * y;
                    a[r * n + q] = sine * x + cosine * y;
                }
                for (int r = 0; r < n; ++r) {
                    const double x = a[p * n + r], y = a[q * n + r];
                    a[p * n + r] = cosine * x - sine * y;
                    a[q * n + r] = sine * x + cosine * y;
                }
                for (int r = 0; r < n; ++r) {
                    const double x = v[r * n + p], y = v[r * n + q];
                    v[r * n + p] = cosine * x - sine * y;
                    v[r * n + q] = sine * x + cosine * y;
                }
            }
        }
    }
    for (int c = 0; c < n; ++c) {
        w[c] = a[c * n + c];
    }
    for (int c = 0; c < n; ++c) {
        int least = c;
        for (int d = c + 1; d < n; ++d) {
            if (w[d] < w[least]) {
                least = d;
            }
        }
        const double t = w[c];
        w[c] = w[least];
        w[least] = t;
        for (int r = 0; r < n && least != c; ++r) {
            const double x = v[r * n + c];
            v[r * n + c] = v[r * n + least];
            v[r * n + least] = x;
        }
    }
}
