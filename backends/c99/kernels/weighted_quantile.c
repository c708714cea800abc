/* Increasing keys, their weights along with them; by insertion. */
static void @sort_pairs(double *keys, double *weights, int n) {
    for (int i = 1; i < n; ++i) {
        const double key = keys[i], weight = weights[i];
        int place = i;
        for (; place > 0 && key < keys[place - 1]; --place) {
            keys[place] = keys[place - 1];
            weights[place] = weights[place - 1];
        }
        keys[place] = key;
        weights[place] = weight;
    }
}

/* What the keys below `low` weigh, and those up to `high`. */
static void @weigh(const double *keys, const double *weights, int n, double low, double high, double *below, double *within) {
    enum { PARTS = 32 }; /* running sums that take turns, so that the loop vectorizes */
    double s[PARTS] = {0}, m[PARTS] = {0};
    int i = 0;
    for (; i + PARTS <= n; i += PARTS) {
        for (int k = 0; k < PARTS; ++k) {
            const double key = keys[i + k], weight = weights[i + k], rest = key <= high ? weight : 0.0;
            s[k] += key < low ? weight : 0.0;
            m[k] += key >= low ? rest : 0.0;
        }
    }
    for (; i < n; ++i) {
        s[0] += keys[i] < low ? weights[i] : 0.0;
        m[0] += keys[i] >= low && keys[i] <= high ? weights[i] : 0.0;
    }
    *below = *within = 0.0;
    for (int k = 0; k < PARTS; ++k) {
        *below += s[k];
        *within += m[k];
    }
}

/* Moves the entries with keys from `low` to `high` to x and w, which may be where they are; gives their number. */
static int @keep(double *x, double *w, const double *keys, const double *weights, int n, double low, double high) {
    int kept = 0;
    for (int i = 0; i < n; ++i) { /* without branches */
        const double key = keys[i], weight = weights[i];
        x[kept] = key;
        w[kept] = weight;
        kept += (key >= low) & (key <= high);
    }
    return kept;
}

/* The least key up to which the weights add up to `amount`; INFINITY where they never do. NaN comes last. `space` is for 2 n.
 * Most entries lie outside the two keys of a sample that the quantile is likely between (Floyd and Rivest, Commun. ACM 18, 1975):
 * passes go over ever fewer. */
static double @weighted_quantile(const double *keys, const double *weights, double amount, double *space, int n) {
    enum { SAMPLE = 128, MARGIN = 12 };
    double *const x = space, *const w = space + n;
    double sample[SAMPLE], share[SAMPLE], below, within, whole;
    @weigh(keys, weights, n, -INFINITY, INFINITY, &below, &whole);
    if (!(whole >= amount)) {
        return INFINITY;
    }
    for (int margin = MARGIN; n > SAMPLE;) {
        double total = 0.0;
        for (uint32_t i = 0; i < SAMPLE; ++i) {
            const uint64_t place = ((uint64_t)(i * 2654435769u) * (uint64_t)n) >> 32;
            sample[i] = keys[place] == keys[place] ? keys[place] : INFINITY;
            share[i] = weights[place];
            total += share[i];
        }
        @sort_pairs(sample, share, SAMPLE);
        int place = margin > 0 ? 0 : SAMPLE / 2; /* the middle where too many were left */
        for (double sum = share[0]; margin > 0 && place + 1 < SAMPLE && sum < amount / whole * total; sum += share[place]) {
            ++place;
        }
        double low = place >= margin ? sample[place - margin] : -INFINITY;
        double high = place + margin < SAMPLE ? sample[place + margin] : INFINITY;
        @weigh(keys, weights, n, low, high, &below, &within);
        if (high == INFINITY && amount > below + within) { /* all that is left, but for rounding */
            amount = below + within;
        }
        if (below >= amount && below > 0.0) {
            high = nextafter(low, -INFINITY);
            low = -INFINITY;
            whole = below;
        } else if (below + within >= amount && low < high) {
            amount -= below;
            whole = within;
        } else if (below + within >= amount) {
            return high;
        } else {
            amount -= below + within;
            whole -= below + within;
            low = nextafter(high, INFINITY);
            high = INFINITY;
        }
        const int kept = @keep(x, w, keys, weights, n, low, high);
        if (kept == 0) {
            return low;
        }
        margin = 2 * kept <= n ? MARGIN : 0;
        n = kept;
        keys = x;
        weights = w;
    }
    n = @keep(x, w, keys, weights, n, -INFINITY, INFINITY);
    if (n == 0) {
        return INFINITY;
    }
    @sort_pairs(x, w, n);
    int place = 0;
    for (double sum = w[0]; place + 1 < n && sum < amount; sum += w[place]) {
        ++place;
    }
    return x[place];
}
