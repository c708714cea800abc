/* Wealth of bets against stated streams: the recursion of `compiler/evidence/wealth.py`, statement after statement of a tile of rounds.
 *
 * The bets of a statement stand in groups of LANES, filled up with bets that pay nothing, so that their wealth stays in registers. */
#include <stdint.h>
#include <string.h>

enum { LANES = 8, TILE = 64 };
typedef double vector __attribute__((vector_size(64), aligned(8)));
typedef int64_t whole __attribute__((vector_size(64), aligned(8)));

typedef struct {
    int64_t stream, place; /* of the values */
    int64_t serial;        /* 1: what is bet on is times the sign of the last one */
    int64_t first, groups; /* of lanes */
    int64_t edges, bins;   /* between bins; no bins: a bet on the mean */
    int64_t odds;          /* the first payment, a row of lanes for each bin */
    double mean, prior;
    double low, high; /* differences from the mean between which no payment is at its least */
} Statement;

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

enum { MEAN, BOUNDED, BINNED };

/* Groups of lanes through a tile: U <- U e + share, with U the wealth S and the share that begins to bet with it. Payments are
   base + slope away, not less than `least` where it is BOUNDED, or rows of a table. */
static inline __attribute__((always_inline)) void grow(const int groups, const int kind, double *wealth, const double *slope,
                                                       const double *base, const double *least, const double *away,
                                                       const double *const *rows, const double *shares, double prior,
                                                       int64_t rounds, vector *totals) {
    vector own[2], slopes[2], bases[2], floors[2];
    for (int g = 0; g < groups; ++g) {
        own[g] = load(wealth + g * LANES);
        slopes[g] = load(slope + g * LANES);
        bases[g] = load(base + g * LANES);
        floors[g] = load(least + g * LANES);
    }
    for (int64_t t = 0; t < rounds; ++t) {
        for (int g = 0; g < groups; ++g) {
            vector paid = kind == BINNED ? load(rows[t] + g * LANES) : bases[g] + slopes[g] * splat(away[t]);
            if (kind == BOUNDED) paid = at_least(paid, floors[g]);
            own[g] = own[g] * paid + splat(shares[t]);
        }
        totals[t] += splat(prior) * (groups == 2 ? own[0] + own[1] : own[0]);
    }
    for (int g = 0; g < groups; ++g) memcpy(wealth + g * LANES, &own[g], sizeof own[g]);
}

static void statement(const Statement *s, const Tables *of, double *wealth, const double *values, double before,
                      const double *shares, int64_t rounds, vector *totals) {
    double away[TILE], last[TILE];
    int64_t bins[TILE] = {0};
    const double *rows[TILE];
    const double *slope = of->slope + s->first, *base = of->base + s->first, *least = of->least + s->first;
    const int kind = s->bins ? BINNED : MEAN;
    const double low = s->low, high = s->high;
    double beyond = 0.0;
    wealth += s->first;
    if (kind == BINNED) {
        for (int64_t k = 0; k < s->bins - 1; ++k)
            for (int64_t t = 0; t < rounds; ++t) bins[t] += values[t] > of->edges[s->edges + k];
    } else {
        for (int64_t t = 0; t < rounds; ++t) away[t] = values[t] - s->mean;
        if (s->serial) {
            last[0] = before - s->mean;
            memcpy(last + 1, away, (size_t)(rounds - 1) * sizeof *away);
            for (int64_t t = 0; t < rounds; ++t) away[t] *= last[t] > 0.0 ? 1.0 : last[t] < 0.0 ? -1.0 : 0.0;
        }
    }
    for (int64_t t = 0; kind != BINNED && t < rounds; ++t) beyond += away[t] < low ? 1.0 : away[t] > high ? 1.0 : 0.0;
    for (int64_t g = 0; g < s->groups; g += 2) {
        const int64_t at = g * LANES;
        for (int64_t t = 0; kind == BINNED && t < rounds; ++t) rows[t] = of->odds + s->odds + bins[t] * s->groups * LANES + at;
#define GROW(kind)                                                                                                               \
    if (g + 1 < s->groups)                                                                                                       \
        grow(2, kind, wealth + at, slope + at, base + at, least + at, away, rows, shares, s->prior, rounds, totals);             \
    else grow(1, kind, wealth + at, slope + at, base + at, least + at, away, rows, shares, s->prior, rounds, totals)
        if (kind == BINNED) {
            GROW(BINNED);
        } else if (beyond > 0.0) {
            GROW(BOUNDED);
        } else {
            GROW(MEAN);
        }
    }
}

/* Play rounds: `wealth` is by lane, before and after, each with the share that begins to bet in the next round; `shares` are those of the
 * rounds after each; `last` is the value of each statement in the round before, nan in the first; `totals` get the wealth of all lanes
 * after each round. */
void oco_bets_play(double *wealth, const Statement *statements, int64_t count, const Tables *tables, const double *const *streams,
                   const int64_t *strides, const double *last, const double *shares, int64_t rounds, double *totals) {
    for (int64_t from = 0; from < rounds; from += TILE) {
        const int64_t length = rounds - from < TILE ? rounds - from : TILE;
        vector sums[TILE] __attribute__((aligned(64)));
        double values[TILE];
        memset(sums, 0, sizeof sums);
        for (int64_t k = 0; k < count; ++k) {
            const Statement *s = statements + k;
            const int64_t stride = strides[s->stream];
            const double *column = streams[s->stream] + from * stride + s->place;
            if (!k || s->stream != s[-1].stream || s->place != s[-1].place)
                for (int64_t t = 0; t < length; ++t) values[t] = column[t * stride];
            statement(s, tables, wealth, values, from ? column[-stride] : last[k], shares + from, length, sums);
        }
        for (int64_t t = 0; t < length; ++t) {
            double sum = 0.0;
            for (int l = 0; l < LANES; ++l) sum += sums[t][l];
            totals[from + t] = sum;
        }
    }
}
