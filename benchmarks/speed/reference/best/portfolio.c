/* Mirror descent with entropy on examples/portfolio.oco, for speed alone: no logarithm, and the constraint at the new decision at once. */
#include "exponential.h"

enum { D = 30 };

void reference(int64_t rounds, const double *relative, const double *shock, double T, double *decisions) {
    double x[D], v[D], level[D], Q = 0;
    const double theta = 1 / T;
    for (int j = 0; j < D; ++j) {
        x[j] = 1.0 / D;
        level[j] = (1 + j / 10) / 3.0;
    }
    for (int64_t t = 0; t < rounds; ++t, relative += D, shock += D, decisions += D) {
        double wealth = 0, total = 0, value = 0;
        for (int j = 0; j < D; ++j) {
            decisions[j] = x[j];
            wealth += relative[j] * x[j];
        }
        const double slope = sqrt(T) / T / wealth, pull = Q / T;
        for (int j = 0; j < D; ++j) {
            v[j] = ((1 - theta) * x[j] + theta / D) * exponential(slope * relative[j] - pull * level[j] * shock[j]);
            total += v[j];
        }
        const double scale = 1 / total;
        for (int j = 0; j < D; ++j) {
            x[j] = v[j] * scale;
            value += level[j] * shock[j] * x[j];
        }
        Q = Q + value > 0.5 ? Q + value - 0.5 : 0;
    }
}
