// Mathematical functions in the three precisions.

#ifndef _MATH_H_
#define _MATH_H_
__noinference__ {
// Constants that double holds exactly enough.
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define MAXFLOAT 3.40282347e+38F
#define HUGE_VAL (1.0e308 * 10.0)
#define HUGE_VALF ((float)HUGE_VAL)
#define HUGE_VALL ((long double)HUGE_VAL)
#define INFINITY HUGE_VALF
#define NAN (-(INFINITY - INFINITY))

#define FP_NAN 0
#define FP_INFINITE 1
#define FP_ZERO 2
#define FP_SUBNORMAL 3
#define FP_NORMAL 4
#define FP_ILOGB0 (-2147483647 - 1)
#define FP_ILOGBNAN (-2147483647 - 1)
#define MATH_ERRNO 1
#define MATH_ERREXCEPT 2

typedef float float_t;
typedef double double_t;

namespace Cmath {
  extern "C" int _cyc_fpclassify(double);
  extern "C" int _cyc_signbit(double);
}
// Classes of numbers. The macros work on double: a narrower number keeps its class, except that a subnormal float is
// a normal double.
#define fpclassify(x) (Cmath::_cyc_fpclassify(x))
#define signbit(x) (Cmath::_cyc_signbit(x))
#define isfinite(x) (fpclassify(x) > FP_INFINITE)
#define isinf(x) (fpclassify(x) == FP_INFINITE)
#define isnan(x) (fpclassify(x) == FP_NAN)
#define isnormal(x) (fpclassify(x) == FP_NORMAL)
#define isgreater(x, y) ((x) > (y))
#define isgreaterequal(x, y) ((x) >= (y))
#define isless(x, y) ((x) < (y))
#define islessequal(x, y) ((x) <= (y))
#define islessgreater(x, y) ((x) < (y) || (x) > (y))
#define isunordered(x, y) (isnan(x) || isnan(y))

extern "C" int signgam;
extern "C" double j0(double);
extern "C" double j1(double);
extern "C" double jn(int, double);
extern "C" double y0(double);
extern "C" double y1(double);
extern "C" double yn(int, double);
extern "C" double scalb(double, double);

extern "C" double acos(double);
extern "C" double acosh(double);
extern "C" double asin(double);
extern "C" double asinh(double);
extern "C" double atan(double);
extern "C" double atanh(double);
extern "C" double cbrt(double);
extern "C" double ceil(double);
extern "C" double cos(double);
extern "C" double cosh(double);
extern "C" double erf(double);
extern "C" double erfc(double);
extern "C" double exp(double);
extern "C" double exp2(double);
extern "C" double expm1(double);
extern "C" double fabs(double);
extern "C" double floor(double);
extern "C" double lgamma(double);
extern "C" double log(double);
extern "C" double log10(double);
extern "C" double log1p(double);
extern "C" double log2(double);
extern "C" double logb(double);
extern "C" double nearbyint(double);
extern "C" double rint(double);
extern "C" double round(double);
extern "C" double sin(double);
extern "C" double sinh(double);
extern "C" double sqrt(double);
extern "C" double tan(double);
extern "C" double tanh(double);
extern "C" double tgamma(double);
extern "C" double trunc(double);
extern "C" double atan2(double, double);
extern "C" double copysign(double, double);
extern "C" double fdim(double, double);
extern "C" double fmax(double, double);
extern "C" double fmin(double, double);
extern "C" double fmod(double, double);
extern "C" double hypot(double, double);
extern "C" double nextafter(double, double);
extern "C" double pow(double, double);
extern "C" double remainder(double, double);
extern "C" double fma(double, double, double);
extern "C" double frexp(double, int @);
extern "C" double ldexp(double, int);
extern "C" double modf(double, double @);
extern "C" double nexttoward(double, long double);
extern "C" double remquo(double, double, int @);
extern "C" double scalbn(double, int);
extern "C" double scalbln(double, long);
extern "C" int ilogb(double);
extern "C" long lrint(double);
extern "C" long lround(double);
extern "C" long long llrint(double);
extern "C" long long llround(double);

extern "C" float acosf(float);
extern "C" float acoshf(float);
extern "C" float asinf(float);
extern "C" float asinhf(float);
extern "C" float atanf(float);
extern "C" float atanhf(float);
extern "C" float cbrtf(float);
extern "C" float ceilf(float);
extern "C" float cosf(float);
extern "C" float coshf(float);
extern "C" float erff(float);
extern "C" float erfcf(float);
extern "C" float expf(float);
extern "C" float exp2f(float);
extern "C" float expm1f(float);
extern "C" float fabsf(float);
extern "C" float floorf(float);
extern "C" float lgammaf(float);
extern "C" float logf(float);
extern "C" float log10f(float);
extern "C" float log1pf(float);
extern "C" float log2f(float);
extern "C" float logbf(float);
extern "C" float nearbyintf(float);
extern "C" float rintf(float);
extern "C" float roundf(float);
extern "C" float sinf(float);
extern "C" float sinhf(float);
extern "C" float sqrtf(float);
extern "C" float tanf(float);
extern "C" float tanhf(float);
extern "C" float tgammaf(float);
extern "C" float truncf(float);
extern "C" float atan2f(float, float);
extern "C" float copysignf(float, float);
extern "C" float fdimf(float, float);
extern "C" float fmaxf(float, float);
extern "C" float fminf(float, float);
extern "C" float fmodf(float, float);
extern "C" float hypotf(float, float);
extern "C" float nextafterf(float, float);
extern "C" float powf(float, float);
extern "C" float remainderf(float, float);
extern "C" float fmaf(float, float, float);
extern "C" float frexpf(float, int @);
extern "C" float ldexpf(float, int);
extern "C" float modff(float, float @);
extern "C" float nexttowardf(float, long double);
extern "C" float remquof(float, float, int @);
extern "C" float scalbnf(float, int);
extern "C" float scalblnf(float, long);
extern "C" int ilogbf(float);
extern "C" long lrintf(float);
extern "C" long lroundf(float);
extern "C" long long llrintf(float);
extern "C" long long llroundf(float);

extern "C" long double acosl(long double);
extern "C" long double acoshl(long double);
extern "C" long double asinl(long double);
extern "C" long double asinhl(long double);
extern "C" long double atanl(long double);
extern "C" long double atanhl(long double);
extern "C" long double cbrtl(long double);
extern "C" long double ceill(long double);
extern "C" long double cosl(long double);
extern "C" long double coshl(long double);
extern "C" long double erfl(long double);
extern "C" long double erfcl(long double);
extern "C" long double expl(long double);
extern "C" long double exp2l(long double);
extern "C" long double expm1l(long double);
extern "C" long double fabsl(long double);
extern "C" long double floorl(long double);
extern "C" long double lgammal(long double);
extern "C" long double logl(long double);
extern "C" long double log10l(long double);
extern "C" long double log1pl(long double);
extern "C" long double log2l(long double);
extern "C" long double logbl(long double);
extern "C" long double nearbyintl(long double);
extern "C" long double rintl(long double);
extern "C" long double roundl(long double);
extern "C" long double sinl(long double);
extern "C" long double sinhl(long double);
extern "C" long double sqrtl(long double);
extern "C" long double tanl(long double);
extern "C" long double tanhl(long double);
extern "C" long double tgammal(long double);
extern "C" long double truncl(long double);
extern "C" long double atan2l(long double, long double);
extern "C" long double copysignl(long double, long double);
extern "C" long double fdiml(long double, long double);
extern "C" long double fmaxl(long double, long double);
extern "C" long double fminl(long double, long double);
extern "C" long double fmodl(long double, long double);
extern "C" long double hypotl(long double, long double);
extern "C" long double nextafterl(long double, long double);
extern "C" long double powl(long double, long double);
extern "C" long double remainderl(long double, long double);
extern "C" long double fmal(long double, long double, long double);
extern "C" long double frexpl(long double, int @);
extern "C" long double ldexpl(long double, int);
extern "C" long double modfl(long double, long double @);
extern "C" long double nexttowardl(long double, long double);
extern "C" long double remquol(long double, long double, int @);
extern "C" long double scalbnl(long double, int);
extern "C" long double scalblnl(long double, long);
extern "C" int ilogbl(long double);
extern "C" long lrintl(long double);
extern "C" long lroundl(long double);
extern "C" long long llrintl(long double);
extern "C" long long llroundl(long double);

}
#endif
