/* Wealth of the bets on many streams at once: the recursion of `Evidence`, a round after another. See watching.py. */

/* values (rounds, streams); slopes of `means` bets on the mean, then of `serials` on independence; odds (bins, odd) between edges
   (bins - 1); wealth (streams, bets), last and reached (streams). */
void play(double *wealth, double *last, unsigned char *reached, const double *values, long rounds, long streams,
          long before, double share, double threshold, double mean, const double *slopes, long means, long serials,
          const double *edges, long bins, const double *odds, long odd, const double *prior) {
    const long bets = means + serials + odd;
    for (long s = 0; s < streams; ++s) {
        double *own = wealth + s * bets;
        double sign = last[s];
        for (long t = 0; t < rounds; ++t) {
            const double x = values[t * streams + s], away = x - mean, serial = sign * away;
            double total = 1.0 - (double)(before + t + 1) * share;
            long bin = 0;
            while (bin < bins - 1 && x > edges[bin]) ++bin;
            const double *row = odds + bin * odd;
            for (long b = 0; b < means; ++b) {
                own[b] = (own[b] + share) * (1.0 + slopes[b] * away);
                total += prior[b] * own[b];
            }
            for (long b = means; b < means + serials; ++b) {
                own[b] = (own[b] + share) * (1.0 + slopes[b] * serial);
                total += prior[b] * own[b];
            }
            for (long b = 0; b < odd; ++b) {
                const long k = means + serials + b;
                own[k] = (own[k] + share) * row[b];
                total += prior[k] * own[k];
            }
            sign = (away > 0.0) - (away < 0.0);
            if (total >= threshold) reached[s] = 1;
        }
        last[s] = sign;
    }
}
