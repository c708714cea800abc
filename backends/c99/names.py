"""Prefix of every global name of an emitted source: no function of C's library may have it."""

from __future__ import annotations

from oco.compiler.ir.names import identifier

_MATH = """acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 exp10 expm1 frexp ilogb ldexp log log10 log1p log2
    logb modf scalbn scalbln scalb cbrt fabs hypot pow erf erfc lgamma tgamma gamma ceil floor nearbyint rint lrint llrint round lround
    llround trunc fmod remainder remquo copysign nan nextafter nexttoward fdim fmax fmin fma drem significand j0 j1 jn y0 y1 yn finite
    signgam sqrt roundeven"""
_OTHER = """memcpy memmove memset memcmp memchr memccpy mempcpy strcpy strncpy strcat strncat strcmp strncmp strcoll strxfrm strchr strrchr
    strcspn strspn strpbrk strstr strtok strlen strnlen strerror strdup strndup strsep strsignal strsep basename bcmp bcopy bzero index
    rindex ffs ffsl ffsll stpcpy stpncpy swab strcasecmp strncasecmp strverscmp remove rename tmpfile tmpnam tempnam fclose fflush
    fopen freopen setbuf setvbuf fprintf fscanf printf scanf snprintf sprintf sscanf vprintf vsprintf fgetc fgets fputc fputs getc
    getchar gets getline getdelim putc putchar puts ungetc fread fwrite fgetpos fseek fsetpos ftell rewind clearerr feof ferror perror
    dprintf fdopen fileno popen pclose main abort exit atexit abs labs div ldiv rand srand malloc calloc realloc free qsort bsearch atoi
    atof strtod strtol system getenv signal raise time clock select read write open close link unlink access pipe fork wait kill
    double_t float_t max_align_t wchar_t ptrdiff_t intptr_t intmax_t uintmax_t uintptr_t ssize_t off_t va_list locale_t fpos_t"""
LIBRARY = frozenset(_OTHER.split()) | {name + end for name in _MATH.split() for end in ("", "f", "l")}


def module_name(model: str) -> str:
    """Legal name close to the model's."""
    name = identifier(model)
    return f"{name}_learner" if name in LIBRARY else name
