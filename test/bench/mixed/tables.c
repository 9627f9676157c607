#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry { char key[32]; int value; struct entry *next; };
static struct entry *table[256];

static unsigned hash(const char *key)
{
	unsigned h = 5381;
	while (*key)
		h = h * 33 ^ (unsigned char)*key++;
	return h % 256;
}

static struct entry *find(const char *key, int make)
{
	struct entry **at = &table[hash(key)];
	for (; *at; at = &(*at)->next)
		if (!strcmp((*at)->key, key))
			return *at;
	if (make && (*at = calloc(1, sizeof(**at))))
		snprintf((*at)->key, sizeof((*at)->key), "%s", key);
	return *at;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct entry *entry = find(argv[i], 1);
		if (entry)
			printf("%s %d\n", entry->key, ++entry->value);
	}
	return 0;
}
