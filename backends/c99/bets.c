/* Wealth of bets against stated streams: the recursion of `compiler/evidence/wealth.py`, entry after entry of a tile of rounds.
 *
 * The bets of a statement stand in groups of LANES, filled up with bets that pay nothing, so that their wealth stays in registers. What an
 * entry usually has, bets on its mean, on independence and on its distribution, goes through a tile together: the wealth of one group hangs
 * on that of the round before, and the others are worked out meanwhile. What they are paid by is laid out for LANES entries that lie beside
 * each other, row by row.
 *
 * The same in single precision, NARROW lanes to a group, says quickly that there is no alarm: each payment is rounded up by more than all
 * operations on it round down, so that no wealth is less than the true one, and that of ROUNDS rounds is added up, which is not less than
 * the largest among them. */
#include <stdint.h>
#include <string.h>

enum { LANES = 8, NARROW = 16, TILE = 64, ROUNDS = 16, EDGES = 10 }; /* EDGES: between the bins of `compiler/evidence/bets.py` */
typedef double vector __attribute__((vector_size(8 * LANES), aligned(8)));
typedef int64_t whole __attribute__((vector_size(8 * LANES), aligned(8)));
typedef float narrow __attribute__((vector_size(4 * NARROW), aligned(4)));
typedef int32_t narrow_mask __attribute__((vector_size(4 * NARROW), aligned(4)));
typedef float single __attribute__((vector_size(4 * LANES), aligned(4)));

typedef struct {
    int64_t first;                /* lane; those of the mean come first, then those of independence, then those of the distribution */
    int64_t mean, serial, binned; /* groups of lanes of each kind */
    int64_t odds;                 /* the first payment: a row of lanes for each bin */
    double prior[3];              /* stake of a bet of each kind */
} Entry;

/* Entries beside each other, LANES at most. */
typedef struct {
    int64_t first, count, stream, place; /* the first entry, their number, and where their values are */
    int64_t edges, binned;               /* the first edge, a row of LANES for each; not zero where there are EDGES of them, else none */
    double centre[LANES];                /* the means that are stated */
    double low[LANES], high[LANES];      /* differences from them between which no payment is at its least */
} Beside;

typedef struct {
    const double *slope, *base, *least; /* of each lane */
    const double *edges, *odds;
} Tables;

/* The same for groups of NARROW lanes. */
typedef struct {
    const float *slope, *base, *least;
    const double *edges;
    const float *odds;
} NarrowTables;

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
    float narrow_away[TILE][LANES], narrow_turned[TILE][LANES]; /* one pair of the two is filled */
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

/* Values of a row, any numbers in lanes without an entry; memory may be read up to `end`. */
static inline vector values_of(const double *row, int64_t count, const double *end) {
    if (row + LANES <= end) return load(row);
    double own[LANES] = {0};
    for (int64_t i = 0; i < count; ++i) own[i] = row[i];
    return load(own);
}

/* Lay out what a tile of rows pays, `before` being the row before the first; in single precision where it is `rough`. */
static inline __attribute__((always_inline)) void lay_out(const int rough, const Beside *b, const double *edges, const double *rows,
                                                          const double *end, int64_t stride, vector before, int64_t rounds, Tile *tile) {
    const vector centre = load(b->centre), low = load(b->low), high = load(b->high), one = 1.0 - (vector){0};
    const uintptr_t row = (uintptr_t)stride * sizeof *rows;
    vector last = before - centre;
    whole beyond = {0};
    for (int64_t t = 0; t < rounds; ++t) {
        __builtin_prefetch((const void *)((uintptr_t)rows + (uintptr_t)(t + TILE) * row)); /* of the next tile; none faults */
        const vector value = values_of(rows + t * stride, b->count, end), away = value - centre;
        const vector turned = away * ((vector)((whole)one & (whole)(last > 0.0)) - (vector)((whole)one & (whole)(last < 0.0)));
        if (rough) {
            const single near = __builtin_convertvector(away, single), back = __builtin_convertvector(turned, single);
            memcpy(tile->narrow_away[t], &near, sizeof near);
            memcpy(tile->narrow_turned[t], &back, sizeof back);
        } else {
            memcpy(tile->away[t], &away, sizeof away);
            memcpy(tile->turned[t], &turned, sizeof turned);
        }
        beyond |= (whole)(away < low) | (whole)(away > high);
        whole bin = {0};
        if (b->binned) {
            for (int k = 0; k < EDGES; ++k) bin -= (whole)(value > load(edges + k * LANES));
            memcpy(tile->bin[t], &bin, sizeof bin);
        }
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
            const double *first = streams[b->stream] + b->place, *rows = first + from * stride;
            const double *end = first + (rounds - 1) * stride + b->count, *own = last + b->first;
            const vector before = from ? values_of(rows - stride, b->count, end) : values_of(own, b->count, own + b->count);
            Tile tile;
            lay_out(0, b, tables->edges + b->edges, rows, end, stride, before, length, &tile);
            for (int64_t i = 0; i < b->count; ++i) play_entry(entries + b->first + i, tables, wealth, &tile, i, shares + from, length, sums);
        }
        for (int64_t t = 0; t < length; ++t) {
            double sum = 0.0;
            for (int l = 0; l < LANES; ++l) sum += sums[t][l];
            totals[from + t] = sum;
        }
    }
}

static inline narrow load_narrow(const float *from) {
    narrow result;
    memcpy(&result, from, sizeof result);
    return result;
}

/* Groups of lanes of entry i through a tile in single precision, at most one of a kind: `sums` get the wealth of each ROUNDS rounds. */
static inline __attribute__((always_inline)) void grow_most(const int mean, const int serial, const int binned, const int bounded,
                                                            float *wealth, const NarrowTables *of, int64_t first, const float *odds,
                                                            int64_t width, const Tile *tile, int64_t i, const float *shares,
                                                            const double *prior, int64_t rounds, narrow *sums) {
    const int paid = mean + serial, groups = paid + binned;
    narrow own[3], slopes[2], bases[2], floors[2];
    for (int g = 0; g < groups; ++g) own[g] = load_narrow(wealth + first + g * NARROW);
    for (int g = 0; g < paid; ++g) {
        slopes[g] = load_narrow(of->slope + first + g * NARROW);
        bases[g] = load_narrow(of->base + first + g * NARROW);
        floors[g] = load_narrow(of->least + first + g * NARROW);
    }
    for (int64_t from = 0; from < rounds; from += ROUNDS) {
        const int64_t stop = from + ROUNDS < rounds ? from + ROUNDS : rounds;
        narrow added[3] = {{0}, {0}, {0}};
        for (int64_t t = from; t < stop; ++t) {
            for (int g = 0; g < groups; ++g) {
                narrow e = g < paid ? bases[g] + slopes[g] * (g < mean ? tile->narrow_away[t][i] : tile->narrow_turned[t][i])
                                    : load_narrow(odds + tile->bin[t][i] * width);
                if (bounded && g < paid) {
                    const narrow_mask under = (narrow_mask)(e < floors[g]);
                    e = (narrow)((under & (narrow_mask)floors[g]) | (~under & (narrow_mask)e));
                }
                own[g] = own[g] * e + shares[t];
                added[g] += own[g];
            }
        }
        if (mean) sums[from / ROUNDS] += (float)prior[0] * added[0];
        if (serial) sums[from / ROUNDS] += (float)prior[1] * added[mean];
        if (binned) sums[from / ROUNDS] += (float)prior[2] * added[paid];
    }
    for (int g = 0; g < groups; ++g) memcpy(wealth + first + g * NARROW, &own[g], sizeof own[g]);
}

static void play_most(const Entry *e, const NarrowTables *of, float *wealth, const Tile *tile, int64_t i, const float *shares,
                      int64_t rounds, narrow *sums) {
    const float *odds = of->odds + e->odds;
    const int64_t serial = e->first + e->mean * NARROW, binned = serial + e->serial * NARROW, width = e->binned * NARROW;
#define GROW_MOST(mean, serial, binned, bounded, first, odds)                                                                     \
    grow_most(mean, serial, binned, bounded, wealth, of, first, odds, width, tile, i, shares, e->prior, rounds, sums)
    switch (tile->beyond[i] ? -1 : 100 * e->mean + 10 * e->serial + e->binned) { /* what `compiler/evidence/bets.py` makes */
    case 111: GROW_MOST(1, 1, 1, 0, e->first, odds); return;
    case 110: GROW_MOST(1, 1, 0, 0, e->first, odds); return;
    case 101: GROW_MOST(1, 0, 1, 0, e->first, odds); return;
    default: break; /* other numbers of bets, or payments at their least */
    }
    for (int64_t g = 0; g < e->mean; ++g) GROW_MOST(1, 0, 0, 1, e->first + g * NARROW, odds);
    for (int64_t g = 0; g < e->serial; ++g) GROW_MOST(0, 1, 0, 1, serial + g * NARROW, odds);
    for (int64_t g = 0; g < e->binned; ++g) GROW_MOST(0, 0, 1, 0, binned + g * NARROW, odds + g * NARROW);
}

/* Bound of the wealth of all lanes after each of these rounds, nan where there is none; arguments as of `oco_bets_play`. */
double oco_bets_most(float *wealth, const Entry *entries, const Beside *groups, int64_t count, const NarrowTables *tables,
                     const double *const *streams, const int64_t *strides, const double *last, const float *shares, int64_t rounds) {
    double most = 0.0;
    for (int64_t from = 0; from < rounds; from += TILE) {
        const int64_t length = rounds - from < TILE ? rounds - from : TILE;
        narrow sums[TILE / ROUNDS] __attribute__((aligned(64)));
        memset(sums, 0, sizeof sums);
        for (const Beside *b = groups; b < groups + count; ++b) {
            const int64_t stride = strides[b->stream];
            const double *first = streams[b->stream] + b->place, *rows = first + from * stride;
            const double *end = first + (rounds - 1) * stride + b->count, *own = last + b->first;
            const vector before = from ? values_of(rows - stride, b->count, end) : values_of(own, b->count, own + b->count);
            Tile tile;
            lay_out(1, b, tables->edges + b->edges, rows, end, stride, before, length, &tile);
            for (int64_t i = 0; i < b->count; ++i) play_most(entries + b->first + i, tables, wealth, &tile, i, shares + from, length, sums);
        }
        for (int64_t k = 0; k < TILE / ROUNDS; ++k) {
            double sum = 0.0;
            for (int l = 0; l < NARROW; ++l) sum += sums[k][l];
            if (most == most && !(sum <= most)) most = sum; /* nan stays */
        }
    }
    return most;
}
