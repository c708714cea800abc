/* Wealth of bets against stated streams: the recursion of `compiler/evidence/wealth.py`, entry after entry of a tile of rounds.
 *
 * The bets of a statement stand in groups of LANES, filled up with bets that pay nothing, so that their wealth stays in registers. What an
 * entry usually has, bets on its mean, on independence and on its distribution, goes through a tile together: the wealth of one group hangs
 * on that of the round before, and the others are worked out meanwhile. */
#include <stdint.h>
#include <string.h>

enum { LANES = 8, TILE = 64 };
typedef double vector __attribute__((vector_size(64), aligned(8)));
typedef int64_t whole __attribute__((vector_size(64), aligned(8)));

typedef struct {
    int64_t stream, place;        /* of the values */
    int64_t first;                /* lane; those of the mean come first, then those of independence, then those of the distribution */
    int64_t mean, serial, binned; /* groups of lanes of each kind */
    int64_t edges, bins, odds;    /* the first edge, the number of bins, the first payment: a row of lanes for each bin */
    double centre;                /* the mean that is stated */
    double low, high;             /* differences from it between which no payment is at its least */
    double prior[3];              /* stake of a bet of each kind */
} Entry;

typedef struct {
    const double *slope, *base, *least; /* of each lane */
    const double *edges, *odds;
} Tables;

static inline vector splat(double a) { return a - (vector){0}; }

static inline vector load(const double *from) {
    vector result;
    memcpy(&result, from, sizeof result);
    return result;
}

static inline vector at_least(vector a, vector b) {
    whole m = (whole)(a < b);
    return (vector)((m & (whole)b) | (~m & (whole)a));
}

/* What the bets of an entry are paid by in a tile: differences from the mean, the same with the sign of the last one, and rows of odds. */
typedef struct {
    double away[TILE], turned[TILE];
    const double *rows[TILE];
} Tile;

/* Groups of lanes through a tile: U <- U e + share, with U the wealth S and the share that begins to bet with it. Payments are
   1 + slope away, not less than `least` where they are `bounded`, or rows of a table. */
static inline __attribute__((always_inline)) void grow(const int mean, const int serial, const int binned, const int bounded, double *wealth,
                                                       const Tables *of, int64_t first, int64_t column, const Tile *tile,
                                                       const double *shares, const double *prior, int64_t rounds, vector *totals) {
    enum { MOST = 5 }; /* groups, at most two of a kind */
    const int paid = mean + serial, groups = paid + binned;
    vector own[MOST], slopes[MOST], bases[MOST], floors[MOST];
    for (int g = 0; g < groups; ++g) own[g] = load(wealth + first + g * LANES);
    for (int g = 0; g < paid; ++g) {
        slopes[g] = load(of->slope + first + g * LANES);
        bases[g] = load(of->base + first + g * LANES);
        floors[g] = load(of->least + first + g * LANES);
    }
    for (int64_t t = 0; t < rounds; ++t) {
        const vector share = splat(shares[t]);
        vector total = totals[t];
        for (int g = 0; g < groups; ++g) {
            vector e = g < paid ? bases[g] + slopes[g] * splat(g < mean ? tile->away[t] : tile->turned[t])
                                : load(tile->rows[t] + column + (g - paid) * LANES);
            if (bounded && g < paid) e = at_least(e, floors[g]);
            own[g] = own[g] * e + share;
        }
        if (mean) total += splat(prior[0]) * (mean == 2 ? own[0] + own[1] : own[0]);
        if (serial) total += splat(prior[1]) * own[mean];
        if (binned) total += splat(prior[2]) * (binned == 2 ? own[paid] + own[paid + 1] : own[paid]);
        totals[t] = total;
    }
    for (int g = 0; g < groups; ++g) memcpy(wealth + first + g * LANES, &own[g], sizeof own[g]);
}

/* Lay out what a tile of values pays; returns true where some payment is at its least. */
static int lay_out(const Entry *e, const Tables *of, const double *values, double before, int64_t rounds, Tile *tile) {
    const double centre = e->centre, low = e->low, high = e->high, *odds = of->odds + e->odds;
    const int64_t width = e->binned * LANES;
    double last[TILE], away[TILE];
    int64_t bins[TILE] = {0}, beyond = 0;
    for (int64_t t = 0; t < rounds; ++t) away[t] = values[t] - centre;
    last[0] = before - centre;
    memcpy(last + 1, away, (size_t)(rounds - 1) * sizeof *last);
    for (int64_t t = 0; t < rounds; ++t) tile->turned[t] = away[t] * (last[t] > 0.0 ? 1.0 : last[t] < 0.0 ? -1.0 : 0.0);
    for (int64_t t = 0; t < rounds; ++t) beyond += (away[t] < low) | (away[t] > high);
    for (int64_t k = 0; k < e->bins - 1; ++k) {
        const double edge = of->edges[e->edges + k];
        for (int64_t t = 0; t < rounds; ++t) bins[t] += values[t] > edge;
    }
    for (int64_t t = 0; t < rounds; ++t) tile->rows[t] = odds + bins[t] * width;
    memcpy(tile->away, away, sizeof away);
    return beyond > 0;
}

static void play_entry(const Entry *e, const Tables *of, double *wealth, const double *values, double before, const double *shares,
                       int64_t rounds, vector *totals) {
    Tile tile;
    const int bounded = lay_out(e, of, values, before, rounds, &tile);
    const int64_t serial = e->first + e->mean * LANES, binned = serial + e->serial * LANES;
#define GROW(mean, serial, binned, bounded, first, column)                                                                       \
    grow(mean, serial, binned, bounded, wealth, of, first, column, &tile, shares, e->prior, rounds, totals)
    switch (bounded ? -1 : 100 * e->mean + 10 * e->serial + e->binned) { /* what `compiler/evidence/bets.py` makes */
    case 212: GROW(2, 1, 2, 0, e->first, 0); return;
    case 210: GROW(2, 1, 0, 0, e->first, 0); return;
    case 102: GROW(1, 0, 2, 0, e->first, 0); return;
    case 2: GROW(0, 0, 2, 0, e->first, 0); return;
    default: break; /* other numbers of bets, or payments at their least */
    }
    for (int64_t g = 0; g < e->mean; ++g) GROW(1, 0, 0, 1, e->first + g * LANES, 0);
    for (int64_t g = 0; g < e->serial; ++g) GROW(0, 1, 0, 1, serial + g * LANES, 0);
    for (int64_t g = 0; g < e->binned; ++g) GROW(0, 0, 1, 0, binned + g * LANES, g * LANES);
}

/* Play rounds: `wealth` is by lane, before and after, each with the share that begins to bet in the next round; `shares` are those of the
 * rounds after each; `last` is the value of each entry in the round before, nan in the first; `totals` get the wealth of all lanes
 * after each round. */
void oco_bets_play(double *wealth, const Entry *entries, int64_t count, const Tables *tables, const double *const *streams,
                   const int64_t *strides, const double *last, const double *shares, int64_t rounds, double *totals) {
    for (int64_t from = 0; from < rounds; from += TILE) {
        const int64_t length = rounds - from < TILE ? rounds - from : TILE;
        vector sums[TILE] __attribute__((aligned(64)));
        double values[TILE];
        memset(sums, 0, sizeof sums);
        for (int64_t k = 0; k < count; ++k) {
            const Entry *e = entries + k;
            const int64_t stride = strides[e->stream];
            const double *column = streams[e->stream] + from * stride + e->place;
            for (int64_t t = 0; t < length; ++t) values[t] = column[t * stride];
            play_entry(e, tables, wealth, values, from ? column[-stride] : last[k], shares + from, length, sums);
        }
        for (int64_t t = 0; t < length; ++t) {
            double sum = 0.0;
            for (int l = 0; l < LANES; ++l) sum += sums[t][l];
            totals[from + t] = sum;
        }
    }
}
