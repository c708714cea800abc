/* Mirror descent with entropy on benchmarks/speed/simplex.oco, for speed alone: no logarithm, two passes, and the constraint, which is
   linear, taken at the new decision at once. */
#include "exponential.h"

enum { D = 1000 };

void reference(int64_t rounds, const double *cost, const double *weight, double T, double *decisions) {
    static double x[D], v[D];
    double Q = 0;
    const double slope = sqrt(T) / T, theta = 1 / T;
    for (int j = 0; j < D; ++j) {
        x[j] = 1.0 / D;
    }
    for (int64_t t = 0; t < rounds; ++t, cost += D, weight += D, decisions += D) {
        const double pull = Q / T;
        double total = 0, value = 0;
        for (int j = 0; j < D; ++j) {
            decisions[j] = x[j];
            v[j] = ((1 - theta) * x[j] + theta / D) * exponential(-(slope * cost[j] + pull * weight[j]));
            total += v[j];
        }
        const double scale = 1 / total;
        for (int j = 0; j < D; ++j) {
            x[j] = v[j] * scale;
            value += weight[j] * x[j];
        }
        Q = Q + value > 0.5 ? Q + value - 0.5 : 0;
    }
}
