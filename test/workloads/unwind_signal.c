// Signal handlers on an alternate stack: a timer's handler, which interrupts code anywhere (leaves and libc included),
// a handler within a handler, and a fault's handler. The work is done in the handlers. Runs until it is killed.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#define NOINLINE __attribute__((noinline))

static volatile uint64_t sink;
static sigjmp_buf after_fault;
static volatile char* volatile nowhere;

NOINLINE static uint64_t Leaf(uint64_t x, int rounds) {
  for (int i = 0; i < rounds; ++i) x = x * 6364136223846793005u + (x >> 31);
  return x;
}

NOINLINE static uint64_t InHandler(uint64_t x) { return Leaf(x, 500000) + 1; }

static void OnTimer(int number) {
  (void)number;
  sink = InHandler(sink);
  raise(SIGUSR1);
  sink = InHandler(sink);
}

static void OnUser(int number) {
  (void)number;
  sink = InHandler(sink) ^ 1;
}

static void OnFault(int number, siginfo_t* info, void* context) {
  (void)number, (void)context;
  sink = InHandler(sink ^ (uintptr_t)info->si_addr);
  siglongjmp(after_fault, 1);
}

NOINLINE static void Fault(volatile char* where) { *where = 1; }

NOINLINE static uint64_t Interrupted(uint64_t x) {
  char text[128];
  for (int i = 0; i < 100; ++i) x += (uint64_t)snprintf(text, sizeof text, "%g %d", (double)x / 3, i);
  return Leaf(x, 20000);
}

int main(void) {
  stack_t stack = {.ss_sp = malloc(256 << 10), .ss_size = 256 << 10};
  if (stack.ss_sp == NULL || sigaltstack(&stack, NULL) != 0) return 1;
  struct sigaction timer = {.sa_handler = OnTimer, .sa_flags = SA_ONSTACK};
  struct sigaction user = {.sa_handler = OnUser, .sa_flags = SA_ONSTACK};
  struct sigaction fault = {.sa_sigaction = OnFault, .sa_flags = SA_ONSTACK | SA_SIGINFO};
  if (sigaction(SIGALRM, &timer, NULL) != 0 || sigaction(SIGUSR1, &user, NULL) != 0 || sigaction(SIGSEGV, &fault, NULL) != 0)
    return 1;
  struct itimerval every = {.it_interval = {.tv_usec = 4000}, .it_value = {.tv_usec = 4000}};
  if (setitimer(ITIMER_REAL, &every, NULL) != 0) return 1;
  for (;;) {
    sink = Interrupted(sink);
    if (sigsetjmp(after_fault, 1) == 0) Fault(nowhere);
  }
}
