// Recursion by two functions in turn, with frames of different sizes. Runs until it is killed.
//   unwind_recursion [DEPTH]    1 to DEPTH frames; 560 if DEPTH is not given, more than a sample holds
#include <stdint.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

static volatile uint64_t sink;

NOINLINE static uint64_t Wide(int depth, uint64_t x);

NOINLINE static uint64_t Bottom(uint64_t x) {
  for (int i = 0; i < 20000; ++i) x = x * 6364136223846793005u + (x >> 31);
  return x;
}

NOINLINE static uint64_t Narrow(int depth, uint64_t x) {
  uint64_t deeper = depth == 0 ? Bottom(x) : Wide(depth - 1, x + 1);
  return deeper ^ x;
}

NOINLINE static uint64_t Wide(int depth, uint64_t x) {
  volatile uint64_t frame[20];
  frame[depth % 20] = x;
  uint64_t deeper = depth == 0 ? Bottom(x) : Narrow(depth - 1, x + 3);
  return deeper + frame[depth % 20];
}

int main(int argc, char** argv) {
  uint64_t depth_max = argc > 1 ? strtoull(argv[1], NULL, 10) : 560;
  for (uint64_t x = 1;; ++x) sink = Narrow((int)((x * 37) % depth_max), sink + x);
}
