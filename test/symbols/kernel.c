/* Code like a kernel's or a module's, without a library. Some sections are loaded apart or freed after the start. */

#define SECTION(name) __attribute__((section(name), noinline, used))

typedef unsigned long u64;

static volatile u64 jiffies;
static u64 queue[64];
static unsigned queued;

static inline u64 mix(u64 value)
{
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdUL;
	return value ^ value >> 29;
}

static inline unsigned slot_of(u64 key)
{
	return mix(key) % (sizeof(queue) / sizeof(queue[0]));
}

static inline int is_due(u64 key)
{
	return queue[slot_of(key)] <= jiffies;
}

static void __attribute__((cold, noinline)) warn(u64 key)
{
	for (unsigned i = 0; i < key % 7; i++)
		jiffies += mix(i);
}

u64 __attribute__((noinline)) schedule(u64 key)
{
	if (is_due(key)) {
		queue[slot_of(key)] = jiffies + mix(key);
		return queued++;
	}
	if (key > 1000)
		warn(key);
	return mix(key ^ jiffies);
}

static __attribute__((noinline)) u64 drain(void)
{
	u64 sum = 0;
	for (unsigned i = 0; i < sizeof(queue) / sizeof(queue[0]); i++)
		if (is_due(i))
			sum += schedule(queue[i]);
	return sum;
}

SECTION(".noinstr.text") u64 entry(u64 number)
{
	u64 key = mix(number);
	return is_due(key) ? drain() : schedule(key);
}

SECTION(".init.text") int init_module(void)
{
	for (unsigned i = 0; i < sizeof(queue) / sizeof(queue[0]); i++)
		queue[i] = mix(i);
	return (int)entry(queue[3]);
}

SECTION(".exit.text") void cleanup_module(void)
{
	for (unsigned i = 0; i < queued; i++)
		queue[i % 64] = slot_of(drain());
}

__attribute__((section(".gnu.linkonce.this_module"), used)) static u64 this_module[8];
__attribute__((section("__ksymtab"), used)) static u64 exported[2];
