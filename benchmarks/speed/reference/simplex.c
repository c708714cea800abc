/* Mirror descent with entropy on a simplex of 1000, one linear constraint, written by hand: benchmarks/speed/simplex.oco. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { D = 1000 };

void reference(int64_t rounds, const double *cost, const double *weight, double T, double *decisions) {
    static double x[D], v[D];
    double Q = 0;
    const double V = sqrt(T), alpha = T, theta = 1 / T;
    for (int j = 0; j < D; ++j) {
        x[j] = 1.0 / D;
    }
    for (int64_t t = 0; t < rounds; ++t, cost += D, weight += D) {
        memcpy(decisions + t * D, x, sizeof x);
        double value = -0.5, top = -INFINITY, total = 0;
        for (int j = 0; j < D; ++j) {
            value += weight[j] * x[j];
            const double mixed = (1 - theta) * x[j] + theta / D;
            v[j] = log(mixed > 1e-300 ? mixed : 1e-300) - (V * cost[j] + Q * weight[j]) / alpha;
            top = v[j] > top ? v[j] : top;
        }
        for (int j = 0; j < D; ++j) {
            v[j] = exp(v[j] - top);
            total += v[j];
        }
        for (int j = 0; j < D; ++j) {
            const double next = v[j] / total;
            value += weight[j] * (next - x[j]);
            x[j] = next;
        }
        Q = Q + value > 0 ? Q + value : 0;
    }
}
