/* The largest singular value of a dense matrix by Lanczos bidiagonalization with full reorthogonalization, written by hand for the
   comparison: unlike the generated code it keeps every vector until it has STEPS of them, and has no static shapes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 60

static double dot(const double *restrict a, const double *restrict b, int n) {
    double s[8] = {0};
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int k = 0; k < 8; ++k) {
            s[k] += a[i + k] * b[i + k];
        }
    }
    for (; i < n; ++i) {
        s[0] += a[i] * b[i];
    }
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

static void axpy(double c, const double *restrict x, double *restrict y, int n) {
    for (int i = 0; i < n; ++i) {
        y[i] += c * x[i];
    }
}

/* x less its parts along the rows, twice; their sizes are added to h. Returns the length and makes x a unit vector. */
static double fresh(double *x, const double *rows, int count, int n, double *h) {
    for (int pass = 0; pass < 2; ++pass) {
        for (int r = 0; r < count; ++r) {
            const double part = dot(rows + (size_t)r * n, x, n);
            axpy(-part, rows + (size_t)r * n, x, n);
            if (h) {
                h[r] += part;
            }
        }
    }
    const double length = sqrt(dot(x, x, n));
    for (int i = 0; i < n && length > 0; ++i) {
        x[i] /= length;
    }
    return length;
}

/* u (m), v (n) from the guess in v; returns the singular value. `work` has room for STEPS (m + n + STEPS) + n + 2 STEPS numbers. */
double top_pair(const double *a, int m, int n, double tolerance, double *u, double *v, double *work) {
    double *U = work, *V = U + (size_t)STEPS * m, *B = V + (size_t)(STEPS + 1) * n, *y = B + STEPS * STEPS, *x = y + STEPS;
    double sigma = 0;
    for (int cycle = 0; cycle < 50; ++cycle) {
        memset(B, 0, sizeof(double) * STEPS * STEPS);
        memset(y, 0, sizeof(double) * STEPS);
        y[0] = 1;
        memcpy(V, v, sizeof(double) * n);
        fresh(V, V, 0, n, 0);
        int j = 0, look = 1;
        for (; j < STEPS; ++j) {
            double *p = U + (size_t)j * m, *q = V + (size_t)(j + 1) * n, h[STEPS] = {0};
            for (int i = 0; i < m; ++i) {
                p[i] = dot(a + (size_t)i * n, V + (size_t)j * n, n);
            }
            const double alpha = fresh(p, U, j, m, h);
            for (int i = 0; i < j; ++i) {
                B[i * STEPS + j] = h[i];
            }
            B[j * STEPS + j] = alpha;
            memset(q, 0, sizeof(double) * n);
            for (int i = 0; i < m; ++i) {
                axpy(p[i], a + (size_t)i * n, q, n);
            }
            const double beta = fresh(q, V, j + 1, n, 0);
            if (j + 1 < look && j + 1 < STEPS) {
                continue;
            }
            look = 2 * look + 1;
            for (int power = 0; power < 1000; ++power) { /* the top pair of the small B, from the last one */
                double change = 0, length = 0, z[STEPS];
                for (int i = 0; i <= j; ++i) {
                    x[i] = dot(B + i * STEPS, y, j + 1);
                }
                sigma = sqrt(dot(x, x, j + 1));
                for (int k = 0; k <= j; ++k) {
                    z[k] = 0;
                    for (int i = 0; i <= k; ++i) {
                        z[k] += B[i * STEPS + k] * x[i];
                    }
                    length += z[k] * z[k];
                }
                for (int k = 0; k <= j; ++k) {
                    change += (z[k] - sigma * sigma * y[k]) * (z[k] - sigma * sigma * y[k]);
                    y[k] = z[k] / sqrt(length);
                }
                if (sqrt(change) <= 0.1 * tolerance * sigma * sigma) {
                    break;
                }
            }
            if (fabs(beta * x[j]) / sigma <= 0.9 * tolerance * sigma) {
                ++j;
                break;
            }
        }
        memset(u, 0, sizeof(double) * m);
        memset(v, 0, sizeof(double) * n);
        const int count = j < STEPS ? j : STEPS;
        const int met = j < STEPS || cycle == 49;
        for (int k = 0; k < count; ++k) {
            axpy(x[k] / sigma, U + (size_t)k * m, u, m);
            axpy(y[k], V + (size_t)k * n, v, n);
        }
        if (met) {
            break;
        }
    }
    return sigma;
}
