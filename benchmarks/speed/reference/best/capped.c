/* Mirror descent with the Euclidean distance on benchmarks/speed/capped.oco, for speed alone: the shift of the projection by Newton's method
   from that of the round before, and the constraints, which are linear, taken at the new decision at once. */
#include <math.h>
#include <stdint.h>

enum { D = 500, N = 3 };

static const double CAP = 0.01;

/* Sum of clip(v - shift, 0, CAP) less 1, and the number of entries strictly between. */
static double excess(const double *v, double shift, double *free) {
    double total = 0, count = 0;
    for (int j = 0; j < D; ++j) {
        const double moved = v[j] - shift;
        total += fmin(fmax(moved, 0), CAP);
        count += moved > 0 && moved < CAP ? 1 : 0;
    }
    *free = count;
    return total - 1;
}

static double nearest(const double *v, double shift) {
    double low = v[0], high = v[0], free;
    for (int j = 0; j < D; ++j) {
        low = fmin(low, v[j]);
        high = fmax(high, v[j]);
    }
    low -= CAP;
    for (int k = 0; k < 100; ++k) {
        const double over = excess(v, shift, &free);
        if (fabs(over) <= 1e-15 * D) {
            break;
        }
        *(over > 0 ? &low : &high) = shift;
        const double newton = free > 0 ? shift + over / free : high;
        shift = newton > low && newton < high ? newton : (low + high) / 2;
    }
    return shift;
}

void reference(int64_t rounds, const double *cost, const double *use, double T, double *decisions) {
    double x[D], v[D], Q[N] = {0}, shift = 0;
    const double slope = sqrt(T) / T;
    for (int j = 0; j < D; ++j) {
        x[j] = 1.0 / D;
    }
    for (int64_t t = 0; t < rounds; ++t, cost += D, use += N * D, decisions += D) {
        double value[N] = {0};
        for (int j = 0; j < D; ++j) {
            decisions[j] = x[j];
            v[j] = x[j] - slope * cost[j] - (Q[0] * use[j] + Q[1] * use[D + j] + Q[2] * use[2 * D + j]) / T;
        }
        shift = nearest(v, shift);
        for (int j = 0; j < D; ++j) {
            x[j] = fmin(fmax(v[j] - shift, 0), CAP);
            value[0] += use[j] * x[j];
            value[1] += use[D + j] * x[j];
            value[2] += use[2 * D + j] * x[j];
        }
        for (int n = 0; n < N; ++n) {
            Q[n] = fmax(Q[n] + value[n] - 0.5, 0);
        }
    }
}
