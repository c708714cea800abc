/* COLDQ on examples/job_scheduling.oco, for speed alone: the multiplier begins at that of the round before, and the sum of a hundred
   logarithms of numbers in [1, 4001] is the logarithm of two products, of which none overflows. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { D = 100, REGIONS = 10 };

static double logarithms(const double *u) {
    double first = 1, second = 1;
    for (int j = 0; j < D / 2; ++j) {
        first *= u[j];
        second *= u[j + D / 2];
    }
    return log(first) + log(second);
}

/* x(lam), g(x(lam)), and minus the slope of g in lam. */
static double respond(const double *p, double scale, double lam, double jobs, double *x, double *bend) {
    double u[D], total = 0;
    const double by = 2 / scale, weight = 16 * lam * scale;
    for (int j = 0; j < D; ++j) { /* scale u^2 / 4 + p u - 16 lam = 0 */
        const double q = sqrt(p[j] * p[j] + weight);
        const double root = p[j] > 0 ? 32 * lam / (p[j] + q) : by * (q - p[j]);
        const int inside = root > 1 && root < 4001;
        u[j] = root < 1 ? 1 : root > 4001 ? 4001 : root;
        x[j] = (u[j] - 1) * 0.25;
        total += inside ? 256 / (scale * u[j] * u[j] + 64 * lam) : 0;
    }
    *bend = total;
    return jobs - 4 * logarithms(u);
}

static double step(const double *y, const double *price, double scale, double Q, double jobs, double lam, double *x) {
    double low = 0, high = Q, bend, p[D];
    int rises = 0, falls = 0; /* whether the dual is known to rise at low, to fall at high */
    for (int j = 0; j < D; ++j) {
        p[j] = price[j / 10] - scale * (y[j] + 0.25);
    }
    double g = respond(p, scale, lam, jobs, x, &bend);
    for (int count = 0; count < 100; ++count) {
        if (fabs(g) <= 1e-12 * jobs || (g <= 0 && lam <= 0) || (g > 0 && lam >= Q)) {
            break;
        }
        *(g > 0 ? &low : &high) = lam;
        *(g > 0 ? &rises : &falls) = 1;
        const double newton = bend > 0 ? lam + g / bend : g > 0 ? Q : 0;
        const double between = (low + high) / 2;
        const double next = newton >= high ? (falls ? between : Q) : newton <= low ? (rises ? between : 0) : newton;
        if (fabs(next - lam) <= 1e-15 * next) {
            break;
        }
        lam = next;
        g = respond(p, scale, lam, jobs, x, &bend);
    }
    return lam;
}

void reference(int64_t rounds, const double *price, const double *jobs, double T, double *decisions) {
    double x[D], Q = T / 2, lam = 0;
    for (int j = 0; j < D; ++j) {
        x[j] = 500;
    }
    for (int64_t t = 0; t < rounds; ++t, price += REGIONS) {
        double u[D], y[D];
        memcpy(decisions + t * D, x, sizeof x);
        memcpy(y, x, sizeof x);
        for (int j = 0; j < D; ++j) {
            u[j] = 1 + 4 * x[j];
        }
        const double g = jobs[t] - 4 * logarithms(u);
        if (t > 0) {
            const double grown = (1 - 1 / T) * Q + (g > 0 ? g : 0);
            Q = grown > T / 2 ? grown : T / 2;
        }
        lam = step(y, price, 2 * sqrt(t + 1 < T ? (double)t + 1 : T), Q, jobs[t], lam < Q ? lam : Q, x);
    }
}
