/*
 * A program without frame pointers that is always busy. It recurses to a depth of 1 to 24, works there for about 100 µs
 * and returns. So its stacks differ mostly in depth. It runs until it is killed.
 */
#include <stdint.h>

#define NOINLINE __attribute__((noinline, noclone))

enum { DEPTH_MAX = 24, ROUNDS = 30000 };

static volatile uint64_t sink;

static NOINLINE void work(void)
{
	uint64_t x = sink;

	for (int i = 0; i < ROUNDS; ++i)
		x = (x ^ (x >> 7)) * 0x9e3779b97f4a7c15u + 1;
	sink = x;
}

static NOINLINE void descend(int depth)
{
	if (depth > 1)
		descend(depth - 1);
	else
		work();
	sink += (uint64_t)depth; /* no tail call */
}

int main(void)
{
	for (int depth = 1;; depth = depth % DEPTH_MAX + 1)
		descend(depth);
}
