/* Perturbed leaders (Hazan & Minasyan 2020, OSPF) under weights of the quota (Lee, Ho-Nguyen & Lee 2023, Algorithm 1) on
 * benchmarks/speed/flow.oco, given the numbers drawn. The first row of `decisions` is the first decision. All samples go over the grid at
 * once, from its last node to the first: edge to the right, then downwards, in the order of the nodes.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { ROWS = 11, COLUMNS = 63, NODES = ROWS * COLUMNS, EDGES = 1312, SAMPLES = 7, BLOCK = 252 };

static const double QUOTA = 40;

/* The first edge of a node: those before it have two, those at the right or at the bottom one. */
static int first_edge(int row, int column) {
    return 2 * (row * COLUMNS + column) - row - (row == ROWS - 1 ? column : 0);
}

static void add_path(const unsigned char *down, double share, double *x) {
    for (int row = 0, column = 0; row < ROWS - 1 || column < COLUMNS - 1;) {
        const int node = row * COLUMNS + column;
        const int edge = first_edge(row, column);
        if (down[node]) {
            x[edge + (column < COLUMNS - 1)] += share;
            ++row;
        } else {
            x[edge] += share;
            ++column;
        }
    }
}

static void leader(const double *S, const double *u, const double *scale, double *x) {
    double next[COLUMNS][SAMPLES], cost[SAMPLES];
    static unsigned char down[SAMPLES][NODES];
    memset(x, 0, EDGES * sizeof(double));
    for (int row = ROWS - 1; row >= 0; --row) {
        for (int column = COLUMNS - 1; column >= 0; --column) {
            const int node = row * COLUMNS + column, edge = first_edge(row, column);
            const int right = column < COLUMNS - 1, lower = row < ROWS - 1;
            for (int s = 0; s < SAMPLES; ++s) {
                const double *const v = u + s * EDGES;
                const double on = right ? S[edge] + scale[s] * v[edge] + next[right ? column + 1 : column][s] : INFINITY;
                const double below = lower ? S[edge + right] + scale[s] * v[edge + right] + next[column][s] : INFINITY;
                down[s][node] = below < on;
                cost[s] = right || lower ? (below < on ? below : on) : 0;
            }
            memcpy(next[column], cost, sizeof cost);
        }
    }
    for (int s = 0; s < SAMPLES; ++s) {
        add_path(down[s], 1.0 / SAMPLES, x);
    }
}

void reference(
    int64_t rounds, const double *c, const double *w, const double *u, const double *p, double T, double *decisions
) {
    const double blocks = pow(T, 0.4), theta = 9618.69776020019335902577566 * blocks;
    const double mu = 0.00010396417736897338318422658466 / (blocks * (ceil(blocks) + 1)), delta = 5783.571070714212;
    double x[EDGES], S[EDGES] = {0}, price = 0, over = 0;
    memcpy(x, decisions, sizeof x);
    for (int64_t t = 0; t < rounds; ++t, c += EDGES, w += EDGES, u += SAMPLES * EDGES, p += SAMPLES) {
        const int k = (int)(t % BLOCK) + 1;
        double used = 0;
        memcpy(decisions + t * EDGES, x, sizeof x);
        for (int e = 0; e < EDGES; ++e) {
            S[e] += c[e] + price * w[e];
            used += w[e] * x[e];
        }
        over += used - QUOTA;
        if (k % SAMPLES == 0) {
            double scale[SAMPLES];
            for (int s = 0; s < SAMPLES; ++s) {
                double squares = 0;
                for (int e = 0; e < EDGES; ++e) {
                    squares += u[s * EDGES + e] * u[s * EDGES + e];
                }
                scale[s] = delta * (1 + price) * pow(p[s], 1.0 / EDGES) / sqrt(squares);
            }
            leader(S, u, scale, x);
        }
        if (k == BLOCK) {
            price = fmax((1 - theta * mu) * price + mu * over, 0);
            over = 0;
            memset(S, 0, sizeof S);
        }
    }
}
