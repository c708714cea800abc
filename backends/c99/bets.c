/* Wealth of bets against stated streams: the recursion of `compiler/evidence/wealth.py`, entry after entry of a tile of rounds.
 *
 * The bets of a statement stand in groups of LANES, filled up with bets that pay nothing, so that their wealth stays in registers. What an
 * entry usually has, bets on its mean, on independence and on its distribution, goes through a tile together: the wealth of one group hangs
 * on that of the round before, and the others are worked out meanwhile. What they are paid by is laid out for LANES entries that lie beside
 * each other, row by row. */
#include <stdint.h>
#include <string.h>

enum { LANES = 8, TILE = 64 };
typedef double vector __attribute__((vector_size(8 * LANES), aligned(8)));
typedef int64_t whole __attribute__((vector_size(8 * LANES), aligned(8)));

typedef struct {
    int64_t first;                /* lane; those of the mean come first, then those of independence, then those of the distribution */
    int64_t mean, serial, binned; /* groups of lanes of each kind */
    int64_t odds;                 /* the first payment: a row of lanes for each bin */
    double prior[3];              /* stake of a bet of each kind */
} Entry;

/* Entries beside each other, LANES at most. */
typedef struct {
    int64_t first, count, stream, place; /* the first entry, their number, and where their values are */
    int64_t edges, bins;                 /* the first edge, and the largest number of bins: a row of LANES for each edge */
    double centre[LANES];                /* the means that are stated */
    double low[LANES], high[LANES];      /* differences from them between which no payment is at its least */
} Beside;

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

/* What the bets of entries beside each other are paid by in a tile: differences from the mean, the same with the sign of the last one, and
   bins. */
typedef struct {
    double away[TILE][LANES], turned[TILE][LANES];
    int64_t bin[TILE][LANES];
    int64_t beyond[LANES]; /* not zero where some payment is at its least */
} Tile;

/* Groups of lanes of entry i through a tile: U <- U e + share, with U the wealth S and the share that begins to bet with it. Payments are
   1 + slope away, not less than `least` where they are `bounded`, or rows of a table from `odds` on, `width` apart. */
static inline __attribute__((always_inline)) void grow(const int mean, const int serial, const int binned, const int bounded, double *wealth,
                                                       const Tables *of, int64_t first, const double *odds, int64_t width, const Tile *tile,
                                                       int64_t i, const double *shares, const double *prior, int64_t rounds,
                                                       vector *totals) {
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
            vector e = g < paid ? bases[g] + slopes[g] * splat(g < mean ? tile->away[t][i] : tile->turned[t][i])
                                : load(odds + tile->bin[t][i] * width + (g - paid) * LANES);
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

/* Values of a row, zeros in lanes without an entry. */
static inline vector values_of(const double *row, int64_t count) {
    if (count == LANES) return load(row);
    double own[LANES] = {0};
    for (int64_t i = 0; i < count; ++i) own[i] = row[i];
    return load(own);
}

/* Lay out what a tile of rows pays, `before` being the row before the first. */
static void lay_out(const Beside *b, const Tables *of, const double *rows, int64_t stride, vector before, int64_t rounds, Tile *tile) {
    const vector centre = load(b->centre), low = load(b->low), high = load(b->high), one = 1.0 - (vector){0};
    const double *edges = of->edges + b->edges;
    const uintptr_t row = (uintptr_t)stride * sizeof *rows;
    vector last = before - centre;
    whole beyond = {0};
    for (int64_t t = 0; t < rounds; ++t) {
        __builtin_prefetch((const void *)((uintptr_t)rows + (uintptr_t)(t + TILE) * row)); /* of the next tile; none faults */
        const vector value = values_of(rows + t * stride, b->count), away = value - centre;
        const vector turned = away * ((vector)((whole)one & (whole)(last > 0.0)) - (vector)((whole)one & (whole)(last < 0.0)));
        memcpy(tile->away[t], &away, sizeof away);
        memcpy(tile->turned[t], &turned, sizeof turned);
        beyond |= (whole)(away < low) | (whole)(away > high);
        whole bin = {0};
        for (int64_t k = 0; k < b->bins - 1; ++k) bin -= (whole)(value > load(edges + k * LANES));
        memcpy(tile->bin[t], &bin, sizeof bin);
        last = away;
    }
    memcpy(tile->beyond, &beyond, sizeof beyond);
}

static void play_entry(const Entry *e, const Tables *of, double *wealth, const Tile *tile, int64_t i, const double *shares, int64_t rounds,
                       vector *totals) {
    const double *odds = of->odds + e->odds;
    const int64_t serial = e->first + e->mean * LANES, binned = serial + e->serial * LANES, width = e->binned * LANES;
#define GROW(mean, serial, binned, bounded, first, odds)                                                                          \
    grow(mean, serial, binned, bounded, wealth, of, first, odds, width, tile, i, shares, e->prior, rounds, totals)
    switch (tile->beyond[i] ? -1 : 100 * e->mean + 10 * e->serial + e->binned) { /* what `compiler/evidence/bets.py` makes */
    case 212: GROW(2, 1, 2, 0, e->first, odds); return;
    case 210: GROW(2, 1, 0, 0, e->first, odds); return;
    case 102: GROW(1, 0, 2, 0, e->first, odds); return;
    case 2: GROW(0, 0, 2, 0, e->first, odds); return;
    default: break; /* other numbers of bets, or payments at their least */
    }
    for (int64_t g = 0; g < e->mean; ++g) GROW(1, 0, 0, 1, e->first + g * LANES, odds);
    for (int64_t g = 0; g < e->serial; ++g) GROW(0, 1, 0, 1, serial + g * LANES, odds);
    for (int64_t g = 0; g < e->binned; ++g) GROW(0, 0, 1, 0, binned + g * LANES, odds + g * LANES);
}

/* Play rounds: `wealth` is by lane, before and after, each with the share that begins to bet in the next round; `shares` are those of the
 * rounds after each; `last` is the value of each entry in the round before, nan in the first; `totals` get the wealth of all lanes
 * after each round. */
void oco_bets_play(double *wealth, const Entry *entries, const Beside *groups, int64_t count, const Tables *tables,
                   const double *const *streams, const int64_t *strides, const double *last, const double *shares, int64_t rounds,
                   double *totals) {
    for (int64_t from = 0; from < rounds; from += TILE) {
        const int64_t length = rounds - from < TILE ? rounds - from : TILE;
        vector sums[TILE] __attribute__((aligned(64)));
        memset(sums, 0, sizeof sums);
        for (const Beside *b = groups; b < groups + count; ++b) {
            const int64_t stride = strides[b->stream];
            const double *rows = streams[b->stream] + from * stride + b->place;
            Tile tile;
            lay_out(b, tables, rows, stride, values_of(from ? rows - stride : last + b->first, b->count), length, &tile);
            for (int64_t i = 0; i < b->count; ++i) play_entry(entries + b->first + i, tables, wealth, &tile, i, shares + from, length, sums);
        }
        for (int64_t t = 0; t < length; ++t) {
            double sum = 0.0;
            for (int l = 0; l < LANES; ++l) sum += sums[t][l];
            totals[from + t] = sum;
        }
    }
}
