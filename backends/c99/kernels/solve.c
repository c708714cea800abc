/* Overwrites b (n x k) with the solution of a x = b by elimination with row exchanges; a (n x n) is used up. */
static void @solve(double *a, double *b, int n, int k) {
    for (int j = 0; j < n; ++j) {
        int pivot = j;
        for (int i = j + 1; i < n; ++i) {
            if (fabs(a[i * n + j]) > fabs(a[pivot * n + j])) {
                pivot = i;
            }
        }
        if (pivot != j) {
            for (int c = j; c < n; ++c) {
                const double t = a[j * n + c];
                a[j * n + c] = a[pivot * n + c];
                a[pivot * n + c] = t;
            }
            for (int c = 0; c < k; ++c) {
                const double t = b[j * k + c];
                b[j * k + c] = b[pivot * k + c];
                b[pivot * k + c] = t;
            }
        }
        for (int i = j + 1; i < n; ++i) {
            if (a[i * n + j] == 0 && a[j * n + j] != 0) {
                continue; /* rows of unknowns that are held have one entry */
            }
            const double f = a[i * n + j] / a[j * n + j];
            for (int c = j + 1; c < n; ++c) {
                a[i * n + c] -= f * a[j * n + c];
            }
            for (int c = 0; c < k; ++c) {
                b[i * k + c] -= f * b[j * k + c];
            }
        }
    }
    for (int c = 0; c < k; ++c) {
        for (int i = n - 1; i >= 0; --i) {
            double s = b[i * k + c];
            for (int j = i + 1; j < n; ++j) {
                s -= a[i * n + j] * b[j * k + c];
            }
            b[i * k + c] = s / a[i * n + i];
        }
    }
}
