/* Whether entry a comes before entry b by its number: the smaller, NaN last. */
static inline bool @before(const double *x, int64_t a, int64_t b) {
    return x[a] < x[b] || (x[b] != x[b] && x[a] == x[a]);
}

/* Places of the entries in increasing order, equals in theirs: runs of 16 by insertion, then merged; `space` is for n places. */
static void @argsort(const double *x, int64_t *order, int64_t *space, int n) {
    for (int64_t i = 0; i < n; ++i) {
        int64_t place = i;
        for (; place % 16 > 0 && @before(x, i, order[place - 1]); --place) {
            order[place] = order[place - 1];
        }
        order[place] = i;
    }
    for (int64_t width = 16; width < n; width *= 2) {
        for (int64_t first = 0; first < n; first += 2 * width) {
            const int64_t middle = first + width < n ? first + width : n;
            const int64_t end = middle + width < n ? middle + width : n;
            int64_t a = first, b = middle;
            for (int64_t k = first; k < end; ++k) {
                space[k] = b == end || (a < middle && !@before(x, order[b], order[a])) ? order[a++] : order[b++];
            }
        }
        for (int i = 0; i < n; ++i) {
            order[i] = space[i];
        }
    }
}
