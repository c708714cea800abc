/* Online Frank-Wolfe on matrices of nuclear norm at most 5, 50 x 50 or ROWS x COLUMNS, written by hand: benchmarks/speed/nuclear.oco.
   The linear minimisation is the top singular pair by Lanczos bidiagonalization from the pair of the last round. */
#include "top_pair.c"

#include <stdint.h>

#ifndef RESIDUAL
#define RESIDUAL 1e-11
#endif
#ifndef ROWS
#define ROWS 50
#define COLUMNS 50
#endif
enum { M = ROWS, N = COLUMNS, SIZE = M * N };

static const double RADIUS = 5, TOLERANCE = RESIDUAL;

void reference(int64_t rounds, const double *C, double T, double *decisions) {
    static double x[SIZE], G[SIZE], F[SIZE], u[M], v[N], stir[N], work[(STEPS + 1) * (M + N + STEPS) + 2 * STEPS];
    /* eta = D / (2 G (T/3)^(3/4)): diameter 2 RADIUS, gradients of at most RADIUS + |C| */
    const double eta = 2 * RADIUS / (2 * (RADIUS + sqrt(SIZE)) * pow(T / 3, 0.75)), step = fmin(1, sqrt(3 / T));
    memset(x, 0, sizeof x);
    memset(G, 0, sizeof G);
    for (int j = 0; j < N; ++j) {
        stir[j] = (fmod(j * j * 0.6180339887498949, 1) - 0.5) * sqrt(12.0 / N);
        v[j] = stir[j];
    }
    for (int64_t t = 1; t <= rounds; ++t, C += SIZE) {
        memcpy(decisions + (t - 1) * SIZE, x, sizeof x);
        for (int k = 0; k < SIZE; ++k) {
            G[k] += x[k] - C[k];
            F[k] = eta * G[k] + x[k];
        }
        for (int j = 0; j < N; ++j) { /* a little of every direction: the residual alone does not tell the largest singular value */
            v[j] += 0.01 * stir[j];
        }
        top_pair(F, M, N, TOLERANCE, u, v, work);
        for (int i = 0; i < M; ++i) {
            for (int j = 0; j < N; ++j) {
                x[i * N + j] += step * (-RADIUS * u[i] * v[j] - x[i * N + j]);
            }
        }
    }
}
