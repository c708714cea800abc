/* COLDQ on examples/tracking.oco for many learners, written by hand: blocks of eight learners side by side, one vector a number.
   The rule is that of tracking.c; where learners of a block go different ways, masks choose. State: y (blocks, 10, 8), Q (blocks, 2, 8). */
#include <math.h>
#include <stdint.h>

enum { D = 10, M = 4, N = 2, W = 8 };
typedef double V __attribute__((vector_size(64), aligned(8)));
typedef int64_t B __attribute__((vector_size(64), aligned(8)));

static inline V pick(B mask, V a, V b) { return (V)((mask & (B)a) | (~mask & (B)b)); }
static inline V absolute(V a) { return (V)((B)a & INT64_MAX); }
static inline int some(B mask) {
    int64_t found = 0;
    for (int l = 0; l < W; ++l) {
        found |= mask[l];
    }
    return found != 0;
}

typedef struct {
    V x[D], value[N];
    B inside[D];
} Response;

static inline void respond(const V *y, const V *c, const V *A, const V *lam, double scale, const V *g, Response *r) {
    r->value[0] = g[0];
    r->value[1] = g[1];
    for (int j = 0; j < D; ++j) {
        const V v = y[j] - (c[j] + lam[0] * A[j] + lam[1] * A[D + j]) / scale;
        const V zero = v - v;
        r->inside[j] = (B)(v > 0) & (B)(v < 5);
        r->x[j] = pick((B)(v < 0), zero, pick((B)(v > 5), zero + 5, v));
        const V move = r->x[j] - y[j];
        r->value[0] += A[j] * move;
        r->value[1] += A[D + j] * move;
    }
}

static inline V dual(const V *y, const V *c, double alpha, const V *lam, const Response *r) {
    V total = lam[0] * r->value[0] + lam[1] * r->value[1];
    for (int j = 0; j < D; ++j) {
        const V move = r->x[j] - y[j];
        total += (c[j] + alpha * move) * move;
    }
    return total;
}

/* The Newton step of the multipliers that no bound holds. */
static inline void newton(const V *A, const V *lam, const V *Q, double scale, const Response *r, V *move) {
    const V zero = lam[0] - lam[0];
    V K00 = zero + 1e-290, K01 = zero, K11 = zero + 1e-290;
    for (int j = 0; j < D; ++j) {
        const V a = A[j], b = A[D + j], in = pick(r->inside[j], zero + 1, zero);
        K00 += a * a * (in + 1e-13);
        K01 += a * b * in;
        K11 += b * b * (in + 1e-13);
    }
    B open[N];
    for (int n = 0; n < N; ++n) {
        open[n] = ~(((B)(lam[n] <= 0) & (B)(r->value[n] <= 0)) | ((B)(lam[n] >= Q[n]) & (B)(r->value[n] >= 0)));
    }
    const V det = K00 * K11 - K01 * K01;
    const B both = open[0] & open[1] & (B)(det > 1e-14 * K00 * K11);
    const V alone[N] = {scale * r->value[0] / K00, scale * r->value[1] / K11};
    move[0] = pick(both, scale * (K11 * r->value[0] - K01 * r->value[1]) / det, pick(open[0], alone[0], zero));
    move[1] = pick(both, scale * (K00 * r->value[1] - K01 * r->value[0]) / det, pick(open[1] & ~open[0], alone[1], zero));
    B out[N];
    for (int n = 0; n < N; ++n) {
        out[n] = ((B)(lam[n] <= 0) & (B)(move[n] < 0)) | ((B)(lam[n] >= Q[n]) & (B)(move[n] > 0));
    }
    out[1] &= ~out[0]; /* one that would leave its bound stays, and the other moves alone */
    for (int n = 0; n < N; ++n) {
        move[n] = pick(out[n], zero, pick(out[1 - n], pick(open[n], alone[n], zero), move[n]));
    }
}

static void step(const V *y, const V *c, const V *A, const V *Q, double alpha, const V *g, V *x) {
    V lam[N] = {y[0] - y[0], y[0] - y[0]};
    const V zero = lam[0];
    Response now, next;
    respond(y, c, A, lam, 2 * alpha, g, &now);
    B on = ~(B)(zero != zero);
    for (int count = 0; count < 100; ++count) {
        V move[N], share = zero + 1;
        newton(A, lam, Q, 2 * alpha, &now, move);
        for (int n = 0; n < N; ++n) { /* up to the first bound */
            const V room = pick((B)(move[n] < 0), -lam[n], Q[n] - lam[n]) / move[n];
            share = pick((B)(move[n] != 0) & (B)(room < share), room, share);
        }
        const V gain = move[0] * now.value[0] + move[1] * now.value[1], before = dual(y, c, alpha, lam, &now);
        on &= (B)(gain > alpha * 2.5e-22);
        if (!some(on)) {
            break;
        }
        B search = on;
        for (int tries = 0; tries < 60 && some(search); ++tries, share /= 2) {
            V at[N];
            for (int n = 0; n < N; ++n) {
                const V moved = lam[n] + share * move[n];
                at[n] = pick((B)(moved < 1e-14 * Q[n]), zero, pick((B)(moved > Q[n]), Q[n], moved));
            }
            respond(y, c, A, at, 2 * alpha, g, &next);
            const B good = search & (B)(dual(y, c, alpha, at, &next) >= before - 1e-13 * absolute(before));
            search &= ~good;
            for (int j = 0; j < D; ++j) {
                now.x[j] = pick(good, next.x[j], now.x[j]);
                now.inside[j] = (good & next.inside[j]) | (~good & now.inside[j]);
            }
            for (int n = 0; n < N; ++n) {
                lam[n] = pick(good, at[n], lam[n]);
                now.value[n] = pick(good, next.value[n], now.value[n]);
            }
        }
    }
    for (int j = 0; j < D; ++j) {
        x[j] = now.x[j];
    }
}

static inline void columns(V *to, const double *rows, int n, int count) {
    for (int l = 0; l < W; ++l) {
        const double *row = rows + (l < count ? l : count - 1) * n;
        for (int i = 0; i < n; ++i) {
            ((double *)to)[i * W + l] = row[i];
        }
    }
}

static inline void rows_of(double *to, const V *from, int n, int count) {
    for (int l = 0; l < count; ++l) {
        for (int i = 0; i < n; ++i) {
            to[l * n + i] = ((const double *)from)[i * W + l];
        }
    }
}

/* One round of all learners; data and results have the learner first. */
void reference(int64_t size, int64_t round, double T, double *state_y, double *state_Q, const double *H_rows, const double *noise_rows,
               const double *A_rows, const double *b_rows, double *decisions, double *loss, double *values) {
    const double alpha = sqrt((double)round < T ? (double)round : T);
    for (int64_t b = 0; b * W < size; ++b) {
        const int64_t first = b * W;
        const int count = size - first < W ? (int)(size - first) : W;
        V *const y = (V *)(state_y + b * D * W), *const Q = (V *)(state_Q + b * N * W);
        V H[M * D], noise[M], A[N * D], limit[N], c[D], g[N], f[1], x[D];
        columns(H, H_rows + first * M * D, M * D, count);
        columns(noise, noise_rows + first * M, M, count);
        columns(A, A_rows + first * N * D, N * D, count);
        columns(limit, b_rows + first * N, N, count);
        rows_of(decisions + first * D, y, D, count);
        for (int j = 0; j < D; ++j) {
            c[j] = y[j] - y[j];
        }
        f[0] = c[0];
        for (int i = 0; i < M; ++i) {
            V r = -noise[i];
            for (int j = 0; j < D; ++j) {
                r += H[i * D + j] * (y[j] - 1);
            }
            f[0] += 0.5 * r * r;
            for (int j = 0; j < D; ++j) {
                c[j] += r * H[i * D + j];
            }
        }
        for (int n = 0; n < N; ++n) {
            g[n] = -limit[n];
            for (int j = 0; j < D; ++j) {
                g[n] += A[n * D + j] * y[j];
            }
            if (round > 1) {
                const V grown = (1 - 1 / T) * Q[n] + pick((B)(g[n] > 0), g[n], c[0] - c[0]);
                Q[n] = pick((B)(grown > T / 2), grown, c[0] - c[0] + T / 2);
            }
        }
        rows_of(loss + first, f, 1, count);
        rows_of(values + first * N, g, N, count);
        step(y, c, A, Q, alpha, g, x);
        for (int j = 0; j < D; ++j) {
            y[j] = x[j];
        }
    }
}
