// Scanner of what depends on its surroundings: line ends, which end a statement except inside brackets; brackets, which are counted for that;
// numbers, with what may not follow them; texts and comments. `dsl/text/tokens.py` and `dsl/text/lines.py` scan by the same rules.
#include <string.h>

#include "tree_sitter/alloc.h"
#include "tree_sitter/parser.h"
#include "words.h"

enum Token { NEWLINE, CONTINUATION, COMMENT, INTEGER, DECIMAL, TEXT, LPAR, RPAR, LSQB, RSQB, LBRACE, RBRACE };

static const char BRACKETS[] = "()[]{}";  // in the order of their tokens

// Seventeen digits of the largest number, at 10^308, and of half the smallest, at 10^-324, which rounds to zero.
#define LARGEST 17976931348623158u
#define SMALLEST 24703282292062328u
#define FURTHEST 100000  // powers of ten beyond it are not told apart

static void next(TSLexer *lexer) { lexer->advance(lexer, false); }

static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }

static bool is_of_name(int32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static bool take(TSLexer *lexer, enum Token token) {
  lexer->mark_end(lexer);
  lexer->result_symbol = token;
  return true;
}

// Number as written, without its leading zeros: the first digits, how many there are, and the power of ten of the first.
typedef struct {
  uint64_t leading;
  int64_t digits, power;
} Number;

// Read digits of the places `place`, `place - 1`, ... after the point, or all before it where `place` is 0.
static void read_digits(TSLexer *lexer, Number *n, int64_t place) {
  for (; is_digit(lexer->lookahead); next(lexer), place -= place < 0) {
    unsigned digit = (unsigned)(lexer->lookahead - '0');
    if (n->digits == 0 && digit == 0) continue;
    if (n->digits == 0) n->power = place;
    if (n->digits > 0 && place == 0) n->power++;
    if (n->digits < 19) n->leading = 10 * n->leading + digit;
    n->digits++;
  }
}

// True where the number can be held: 63 bits for integers, the range of double precision for the others.
static bool fits(Number n, bool integer, int64_t exponent) {
  if (integer) return n.digits < 20 && n.leading <= INT64_MAX;
  if (n.digits == 0) return true;
  int64_t power = n.power + exponent;
  uint64_t leading = n.leading;
  for (int64_t held = n.digits < 19 ? n.digits : 19; held > 17; held--) leading /= 10;
  for (int64_t held = n.digits; held < 17; held++) leading *= 10;
  return (power < 308 || (power == 308 && leading <= LARGEST)) && (power > -324 || (power == -324 && leading >= SMALLEST));
}

static bool read_number(TSLexer *lexer, bool begun_by_point) {
  Number n = {0, 0, 0};
  bool integer = !begun_by_point;
  int64_t exponent = 0;
  if (begun_by_point) {
    read_digits(lexer, &n, -1);
    lexer->mark_end(lexer);
  } else {
    read_digits(lexer, &n, 0);
    lexer->mark_end(lexer);
    if (lexer->lookahead == '.') {
      next(lexer);
      if (lexer->lookahead == '.') {  // `0..9` is a range
        lexer->result_symbol = INTEGER;
        return fits(n, true, 0);
      }
      integer = false;
      read_digits(lexer, &n, -1);
      lexer->mark_end(lexer);
    }
  }
  if (lexer->lookahead == 'e' || lexer->lookahead == 'E') {
    next(lexer);
    bool negative = lexer->lookahead == '-';
    if (negative || lexer->lookahead == '+') next(lexer);
    if (!is_digit(lexer->lookahead)) return false;
    for (; is_digit(lexer->lookahead); next(lexer)) {
      if (exponent < FURTHEST) exponent = 10 * exponent + (lexer->lookahead - '0');
    }
    if (negative) exponent = -exponent;
    integer = false;
    lexer->mark_end(lexer);
  }
  if (is_of_name(lexer->lookahead)) return false;
  if (lexer->lookahead == '.') {  // `0.5.2` is no number, `0.5.T` a transpose
    next(lexer);
    if (is_digit(lexer->lookahead)) return false;
  }
  lexer->result_symbol = integer ? INTEGER : DECIMAL;
  return fits(n, integer, exponent);
}

// True where the next line begins with the word of a statement: brackets that are open are never closed then.
static bool begins_statement(TSLexer *lexer) {
  char word[16];
  size_t length = 0;
  while (lexer->lookahead == ' ' || lexer->lookahead == '\t') next(lexer);
  for (; is_of_name(lexer->lookahead) && length < sizeof word - 1; next(lexer)) word[length++] = (char)lexer->lookahead;
  word[length] = '\0';
  for (size_t k = 0; k < sizeof STATEMENT_WORDS / sizeof *STATEMENT_WORDS; k++) {
    if (strcmp(word, STATEMENT_WORDS[k]) == 0) return true;
  }
  return false;
}

void *tree_sitter_oco_external_scanner_create(void) { return ts_calloc(1, sizeof(uint32_t)); }

void tree_sitter_oco_external_scanner_destroy(void *open) { ts_free(open); }

unsigned tree_sitter_oco_external_scanner_serialize(void *open, char *buffer) {
  memcpy(buffer, open, sizeof(uint32_t));
  return sizeof(uint32_t);
}

void tree_sitter_oco_external_scanner_deserialize(void *open, const char *buffer, unsigned length) {
  memset(open, 0, sizeof(uint32_t));
  if (length == sizeof(uint32_t)) memcpy(open, buffer, length);
}

bool tree_sitter_oco_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
  uint32_t *open = payload;
  while (lexer->lookahead == ' ' || lexer->lookahead == '\t') lexer->advance(lexer, true);
  int32_t first = lexer->lookahead;
  if (lexer->eof(lexer)) return false;
  if (first == '\r') {
    lexer->advance(lexer, true);
    if (lexer->lookahead != '\n') return false;
    first = '\n';
  }
  if (first == '\n') {
    next(lexer);
    take(lexer, *open > 0 ? CONTINUATION : NEWLINE);
    if (*open > 0 && begins_statement(lexer)) {
      *open = 0;
      lexer->result_symbol = NEWLINE;
    }
    return true;
  }
  if (first == '#') {
    while (lexer->lookahead != '\n' && !lexer->eof(lexer)) next(lexer);
    return take(lexer, COMMENT);
  }
  if (first == '"' && valid[TEXT]) {
    next(lexer);
    while (lexer->lookahead != '"' && lexer->lookahead != '\n' && !lexer->eof(lexer)) next(lexer);
    if (lexer->lookahead != '"') return false;
    next(lexer);
    return take(lexer, TEXT);
  }
  const char *bracket = first < 128 && first > 0 ? strchr(BRACKETS, (char)first) : NULL;
  if (bracket != NULL) {
    enum Token token = LPAR + (enum Token)(bracket - BRACKETS);
    next(lexer);
    if (token == LPAR || token == LSQB || token == LBRACE) {
      ++*open;
    } else if (*open > 0) {
      --*open;
    }
    return take(lexer, token);
  }
  if (!valid[INTEGER] && !valid[DECIMAL]) return false;
  if (is_digit(first)) return read_number(lexer, false);
  if (first == '.') {
    next(lexer);
    return is_digit(lexer->lookahead) && read_number(lexer, true);
  }
  return false;
}
