/* The library that life.c loads. Built twice: both are equal byte for byte, except for the name of their function. */
#include <stdint.h>

uint64_t WORK(uint64_t rounds)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (uint64_t i = 0; i < rounds; i++)
		h = (h ^ i) * 0x100000001b3u;
	return h;
}
