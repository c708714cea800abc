/* COLDQ on examples/tracking.oco, written by hand: 10 variables in [0, 5], loss |H x - H 1 - noise|^2 / 2, two affine constraints.
   The step minimizes <c, x - y> + alpha |x - y|^2 + sum_n Q_n [g_n(x)]_+ through the two multipliers: Newton's method on the active ones. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { D = 10, M = 4, N = 2 };

static void respond(const double *y, const double *c, const double *A, const double *lam, double scale, const double *g, double *x,
                    double *value, int *inside) {
    for (int j = 0; j < D; ++j) {
        double v = y[j] - (c[j] + lam[0] * A[j] + lam[1] * A[D + j]) / scale;
        inside[j] = v > 0 && v < 5;
        x[j] = v < 0 ? 0 : v > 5 ? 5 : v;
    }
    for (int n = 0; n < N; ++n) {
        value[n] = g[n];
        for (int j = 0; j < D; ++j) {
            value[n] += A[n * D + j] * (x[j] - y[j]);
        }
    }
}

static double dual(const double *y, const double *c, double alpha, const double *lam, const double *x, const double *value) {
    double total = lam[0] * value[0] + lam[1] * value[1];
    for (int j = 0; j < D; ++j) {
        const double move = x[j] - y[j];
        total += (c[j] + alpha * move) * move;
    }
    return total;
}

/* Newton's method on the multipliers that no bound holds, halved until the dual does not fall. */
static void step(const double *y, const double *c, const double *A, const double *Q, double alpha, const double *g, double *x) {
    double lam[N] = {0, 0}, value[N];
    int inside[D];
    const double scale = 2 * alpha;
    respond(y, c, A, lam, scale, g, x, value, inside);
    for (int count = 0; count < 100; ++count) {
        int open[N];
        for (int n = 0; n < N; ++n) {
            open[n] = !((lam[n] <= 0 && value[n] <= 0) || (lam[n] >= Q[n] && value[n] >= 0));
        }
        double K[3] = {1e-290, 0, 1e-290}; /* a symmetric matrix of two rows, solvable where no variable is free */
        for (int j = 0; j < D; ++j) {
            K[0] += 1e-13 * A[j] * A[j];
            K[2] += 1e-13 * A[D + j] * A[D + j];
            if (inside[j]) {
                K[0] += A[j] * A[j];
                K[1] += A[j] * A[D + j];
                K[2] += A[D + j] * A[D + j];
            }
        }
        double move[N] = {0, 0};
        const double det = K[0] * K[2] - K[1] * K[1];
        if (open[0] && open[1] && det > 1e-14 * K[0] * K[2]) {
            move[0] = scale * (K[2] * value[0] - K[1] * value[1]) / det;
            move[1] = scale * (K[0] * value[1] - K[1] * value[0]) / det;
        } else if (open[0]) {
            move[0] = scale * value[0] / K[0];
        } else if (open[1]) {
            move[1] = scale * value[1] / K[2];
        }
        for (int n = 0; n < N; ++n) { /* a multiplier that would leave its bound stays, and the other moves alone */
            if ((lam[n] <= 0 && move[n] < 0) || (lam[n] >= Q[n] && move[n] > 0)) {
                move[n] = 0;
                move[1 - n] = open[1 - n] ? scale * value[1 - n] / K[n ? 0 : 2] : 0;
                break;
            }
        }
        double share = 1; /* up to the first bound */
        for (int n = 0; n < N; ++n) {
            const double room = move[n] < 0 ? -lam[n] : Q[n] - lam[n];
            if (move[n] != 0 && room / move[n] < share) {
                share = room / move[n];
            }
        }
        const double gain = move[0] * value[0] + move[1] * value[1], before = dual(y, c, alpha, lam, x, value);
        if (!(gain > alpha * 2.5e-22)) {
            return;
        }
        for (int tries = 0; tries < 60; ++tries, share /= 2) {
            double next[N] = {lam[0] + share * move[0], lam[1] + share * move[1]};
            for (int n = 0; n < N; ++n) {
                next[n] = next[n] < 1e-14 * Q[n] ? 0 : next[n] > Q[n] ? Q[n] : next[n];
            }
            respond(y, c, A, next, scale, g, x, value, inside);
            if (dual(y, c, alpha, next, x, value) >= before - 1e-13 * fabs(before)) {
                lam[0] = next[0];
                lam[1] = next[1];
                break;
            }
        }
    }
}

/* Round t, from 0: the decision x and the queues after it. */
static void play(int64_t t, double T, const double *H, const double *noise, const double *A, const double *b, double *x, double *Q) {
    double c[D] = {0}, g[N], following[D];
    for (int i = 0; i < M; ++i) {
        double r = -noise[i];
        for (int j = 0; j < D; ++j) {
            r += H[i * D + j] * (x[j] - 1);
        }
        for (int j = 0; j < D; ++j) {
            c[j] += r * H[i * D + j];
        }
    }
    for (int n = 0; n < N; ++n) {
        g[n] = -b[n];
        for (int j = 0; j < D; ++j) {
            g[n] += A[n * D + j] * x[j];
        }
        if (t > 0) {
            const double grown = (1 - 1 / T) * Q[n] + (g[n] > 0 ? g[n] : 0);
            Q[n] = grown > T / 2 ? grown : T / 2;
        }
    }
    step(x, c, A, Q, sqrt(t + 1 < T ? (double)t + 1 : T), g, following);
    memcpy(x, following, sizeof following);
}

void reference(int64_t rounds, const double *H, const double *noise, const double *A, const double *b, double T, double *decisions) {
    double x[D], Q[N] = {T / 2, T / 2};
    for (int j = 0; j < D; ++j) {
        x[j] = 2.5;
    }
    for (int64_t t = 0; t < rounds; ++t, H += M * D, noise += M, A += N * D, b += N) {
        memcpy(decisions + t * D, x, sizeof x);
        play(t, T, H, noise, A, b, x, Q);
    }
}
