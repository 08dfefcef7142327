// The checked arguments of the printf and scanf families: a call's arguments are injected into these datatypes, so that
// the callee knows the type of each.

#ifndef _BITS_PRINTF_H_
#define _BITS_PRINTF_H_
extern datatype PrintArg<`r::E> {
  String_pa(const char ? @nozeroterm`r);
  Int_pa(unsigned long);
  Double_pa(double);
  LongDouble_pa(long double);
  ShortPtr_pa(short @`r);
  IntPtr_pa(unsigned long @`r);
};
typedef datatype PrintArg<`r> @`r parg_t<`r>;

extern datatype ScanfArg<`r::E> {
  ShortPtr_sa(short @`r);
  UShortPtr_sa(unsigned short @`r);
  IntPtr_sa(int @`r);
  UIntPtr_sa(unsigned int @`r);
  StringPtr_sa(char ?`r);
  DoublePtr_sa(double @`r);
  FloatPtr_sa(float @`r);
  CharPtr_sa(char ? @nozeroterm`r);
  LongPtr_sa(long @`r);
  ULongPtr_sa(unsigned long @`r);
};
typedef datatype ScanfArg<`r1> @`r2 sarg_t<`r1,`r2>;
#endif
