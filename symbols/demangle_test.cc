#include "symbols/demangle.h"

#include <gtest/gtest.h>

#include <random>

namespace tributary {
namespace {

TEST(Demangle, WritesCppNames) {
  EXPECT_EQ(Demangle("_Z3foov"), "foo()");
  EXPECT_EQ(Demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int>>::push_back(int const&)");
  EXPECT_EQ(Demangle("_ZN3fooD2Ev.cold"), "foo::~foo() (.cold)");
  EXPECT_EQ(Demangle("_ZZ4mainENKUlvE_clEv"), "main::'lambda'()::operator()() const");
  EXPECT_EQ(Demangle("_Z1fIJidcEEvDpT_"), "void f<int, double, char>(int, double, char)");
}

TEST(Demangle, WritesRustNames) {
  EXPECT_EQ(Demangle("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
  EXPECT_EQ(Demangle("_RINvNtC3std3mem8align_ofjE"), "std::mem::align_of::<usize>");
}

TEST(Demangle, WritesLegacyRustNamesWithoutTheirHash) {
  EXPECT_EQ(Demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core::fmt::Formatter::pad");
  EXPECT_EQ(
      Demangle("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE"),
      "<Test + 'static as foo::Bar<Test>>::bar");
  EXPECT_EQ(Demangle("_ZN3foo17h05af221e174051e9E.llvm.9D1C9369"), "foo");
  EXPECT_EQ(Demangle("_ZN5alloc5boxed12Box$LT$T$GT$3new17h0123456789abcdefE"), "alloc::boxed::Box<T>::new");
  // An escape for a control character is left as it is.
  EXPECT_EQ(Demangle("_ZN6a$u1b$17h0123456789abcdefE"), "a$u1b$");
}

TEST(Demangle, LeavesTheRestAlone) {
  for (const char* name : {"", "main", "_Z", "_ZN", "_R", "_start", "_ZN3fooE_not", "_RNvC", "?foo@@YAXXZ", "_D3foo",
                           "_ZN4core17h0123456789abcdeE_", "printf"}) {
    EXPECT_EQ(Demangle(name), name);
  }
  std::string long_name = "_Z9000" + std::string(9000, 'a') + "v";
  EXPECT_EQ(Demangle(long_name), long_name);
}

// Each level is a pair of the level below, so the text doubles with every dozen letters.
TEST(Demangle, DoesNotWriteOutExponentialNames) {
  auto nested = [](int levels) {
    // Substitutions: S_ is f, S0_ is A, S1_ is A<int, int>, S2_ is A<S1_, S1_>, and so on.
    std::string name = "_Z1fI1AIiiE";
    for (int level = 0; level < levels; ++level) {
      std::string last = "S" + std::string(1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[level + 1]) + "_";
      name += "S0_I" + last + last + "E";
    }
    return name + "EvT_";
  };
  EXPECT_GT(Demangle(nested(8)).size(), 1000u);
  EXPECT_EQ(Demangle(nested(33)), nested(33));
  // Tuples in tuples. `B` refers to the begin of the previous tuple.
  auto base62 = [](size_t n) {
    if (n == 0) return std::string("_");
    std::string digits;
    for (--n;; n /= 62) {
      digits.insert(digits.begin(), "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[n % 62]);
      if (n < 62) break;
    }
    return digits + "_";
  };
  std::string rust = "_RINvC1a1f";
  size_t last = rust.size() - 2;
  rust += "TllE";
  for (int level = 0; level < 200; ++level) {
    size_t here = rust.size() - 2;
    rust += "TB" + base62(last) + "B" + base62(last) + "E";
    last = here;
  }
  rust += "E";
  EXPECT_EQ(Demangle(rust), rust);
  // A few levels are written.
  EXPECT_EQ(Demangle("_RINvC1a1fTllETB7_B7_EE"), "a::f::<(i32, i32), ((i32, i32), (i32, i32))>");
}

TEST(Demangle, SurvivesDeepNesting) {
  for (const char* unit :
       {"P", "R", "K", "PK", "1AI", "N", "F", "Dp", "A_", "M", "XadL_Z", "St", "DTcv", "_Z", "L_Z", "C"}) {
    std::string cpp = "_Z1f", rust = "_RINvC1a1f";
    while (cpp.size() + 10 < 8192) cpp += unit;
    cpp += "i";
    EXPECT_LE(Demangle(cpp).size(), 1u << 21);
    while (rust.size() + 10 < 8192) rust += unit;
    EXPECT_LE(Demangle(rust).size(), 1u << 21);
  }
}

TEST(Demangle, SurvivesMutatedNames) {
  std::mt19937 random(1);
  const std::string seeds[] = {
      "_ZNSt6vectorIiSaIiEE9push_backERKi", "_ZN9__gnu_cxx13new_allocatorISt4pairIKSsiEE9constructIJS3_EEEvPS3_DpOT_",
      "_ZNK3fooIT_EcvT0_IS1_EEv", "_RINvNtC3std3mem8align_ofTjRShB2_EE", "_ZZN1A1fEvENKUlT_E_clIiEEDaS0_"};
  for (int round = 0; round < 20'000; ++round) {
    std::string name = seeds[random() % std::size(seeds)];
    for (int i = random() % 6; i >= 0; --i) {
      size_t at = 2 + random() % (name.size() - 2);
      const char* letters = "0123456789_SITNEKPRDpFvijBLXCZQ";
      switch (random() % 3) {
        case 0:
          name[at] = letters[random() % 31];
          break;
        case 1:
          name.insert(at, name.substr(2 + random() % (name.size() - 2), random() % 12));
          break;
        case 2:
          name.erase(at, random() % 3);
          break;
      }
    }
    EXPECT_LE(Demangle(name).size(), 1u << 21);
  }
}

}  // namespace
}  // namespace tributary
