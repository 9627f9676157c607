// A program whose stacks have every shape that gcc -O2 -fomit-frame-pointer makes: leaves without a frame, frames of
// variable size, realigned stacks, tail calls, callbacks from libc, a second thread. Runs until it is killed.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

static volatile uint64_t sink;

NOINLINE static uint64_t Leaf(uint64_t x) {
  for (int i = 0; i < 300; ++i) x = x * 6364136223846793005u + (x >> 31);
  return x;
}

// Jumps to Leaf and has no frame: the stack contains nothing but the return address to its caller.
NOINLINE static uint64_t TailCall(uint64_t x) { return Leaf(x ^ 0x5bd1e995); }

// The frame's size is known only at run time, so the CFA is computed from rbp even without frame pointers.
NOINLINE static uint64_t VariableFrame(uint64_t x, int n) {
  uint64_t values[n];
  for (int i = 0; i < n; ++i) values[i] = TailCall(x + (uint64_t)i);
  uint64_t sum = 0;
  for (int i = 0; i < n; ++i) sum += values[i];
  return sum;
}

// Needs more alignment than the ABI gives, so the CFA is computed from a saved copy of the stack pointer.
NOINLINE static uint64_t Realigned(uint64_t x) {
  _Alignas(64) volatile uint64_t block[32];
  for (int i = 0; i < 32; ++i) block[i] = Leaf(x + (uint64_t)i);
  return block[x & 31];
}

NOINLINE static uint64_t RealignedVariable(uint64_t x, int n) {
  _Alignas(64) volatile uint64_t block[16];
  uint64_t values[n];
  for (int i = 0; i < n; ++i) values[i] = x + (uint64_t)i;
  for (int i = 0; i < 16; ++i) block[i] = Leaf(values[i % n]);
  return block[x & 15];
}

// Saves six registers and uses a page of stack.
NOINLINE static uint64_t ManyRegisters(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  volatile char page[4096];
  page[a & 4095] = (char)b;
  uint64_t e = a ^ b, f = c + d;
  for (int i = 0; i < 8; ++i) {
    a = Leaf(a + e), b = Leaf(b + f), c += a * d, d ^= b;
  }
  return a + b + c + d + e + f + (uint64_t)page[a & 4095];
}

// Has more arguments than registers, so the stack pointer changes before and after the call.
NOINLINE static uint64_t Pushed(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
  return Leaf(a + b + c) + Leaf(d + e + f + g + h);
}

#ifndef WITHOUT_LIBRARY
static int CompareNumbers(const void* a, const void* b) {
  uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  if (x == y) return 0;
  return (Leaf(x) & 1) + (x > y ? 1 : -2);
}

NOINLINE static uint64_t Sort(uint64_t x) {
  uint64_t values[200];
  for (int i = 0; i < 200; ++i) values[i] = x = Leaf(x);
  qsort(values, 200, sizeof values[0], CompareNumbers);
  return values[7];
}

NOINLINE static uint64_t Text(uint64_t x) {
  char text[256];
  uint64_t sum = 0;
  for (int i = 0; i < 50; ++i) {
    int n = snprintf(text, sizeof text, "%llu %g %s", (unsigned long long)x, (double)x / 7, "text");
    sum += strtoul(text, NULL, 10) + (uint64_t)strtod(text + n / 2, NULL);
    char* copy = strdup(text);
    sum += strlen(copy);
    free(copy);
  }
  return sum;
}
#endif

static void* Work(void* argument) {
  uint64_t x = (uint64_t)argument;
  for (;;) {
    x += VariableFrame(x, 8 + (int)(x & 7));
    x += Realigned(x) + RealignedVariable(x, 4 + (int)(x & 7));
    x += ManyRegisters(x, x + 1, x + 2, x + 3);
    x += Pushed(x, 1, 2, 3, 4, 5, 6, 7);
#ifndef WITHOUT_LIBRARY
    x += Sort(x) + Text(x);
#endif
    sink = x;
  }
  return NULL;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, Work, (void*)17) != 0) return 1;
  Work((void*)42);
}
