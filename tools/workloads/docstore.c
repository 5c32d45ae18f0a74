// SPDX-License-Identifier: GPL-2.0
/*
 * What a document store does to the page cache, in small: clients read documents at places that
 * follow a Zipf distribution, and of each N operations one changes the document that it has read.
 * Blocks of documents are kept in a cache of the store's own, beside the page cache, and come from
 * one file by pread(). A change goes to a log, which is synced after each so many records. Changed
 * blocks stay in the own cache; beyond a share of it the oldest one is written back.
 *
 * All is paced by operations, nothing by a clock: a slow machine has the same mix of reads, writes
 * and syncs. Two copies with one seed ask for the same documents.
 *
 * The defaults are a published load, scaled from 10 GiB to 64 MiB: YCSB's workload b (95 % reads,
 * 5 % updates, documents of 10 fields of 100 bytes, Zipf's exponent 0.99, ranks scattered by FNV)
 * on MongoDB in a cgroup of 10 GiB. Its WiredTiger takes half of what is above 1 GiB for its own
 * cache (45 %), has leaf pages of 32 KiB, and writes back when more than 5 % of the cache is dirty.
 * It syncs the log after 100 ms; here records are counted instead. The size of the data was not
 * published: it is three times the cgroup here.
 *
 * An operation is a read of a document, with or without the change.
 */
#include "common.h"
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>

#define DOCUMENT	1024UL
#define WAYS		8UL
#define MAX_CLIENTS	1024UL

static struct {
	const char *directory;
	const char *progress;
	size_t size;
	size_t cache;
	size_t block;
	size_t clients;
	size_t update_every;	/* operations of a client */
	size_t sync_every;	/* records of the log */
	size_t log_size;	/* it begins anew there */
	size_t dirty;		/* percent of the cache */
	size_t seed;
	double zipf;
} conf = {
	.size = 192UL << 20,
	.cache = 28UL << 20,
	.block = 32UL << 10,
	.clients = 4,
	.update_every = 20,
	.sync_every = 32,
	.log_size = 4UL << 20,
	.dirty = 5,
	.seed = 1,
	.zipf = 0.99,
};

static const char usage[] =
"usage: docstore --directory DIR [OPTION]...\n"
"Read and change documents of a store, with a log and a cache of its own, until killed.\n"
"\n"
"  --directory DIR   where its files are made: data and log\n"
"  --size SIZE       all documents, of 1 KiB each (192M)\n"
"  --cache SIZE      the store's own cache (28M)\n"
"  --block SIZE      what is read and written at once (32K)\n"
"  --clients N       threads that ask for documents (4)\n"
"  --update-every N  a client changes each N-th document that it reads (20)\n"
"  --sync-every N    the log is synced after so many changes (32)\n"
"  --log-size SIZE   the log begins anew when it has that size (4M)\n"
"  --dirty PERCENT   of the own cache that may be changed and not written back (5)\n"
"  --zipf S          exponent of the distribution, above 0 and below 1 (0.99)\n"
"  --seed N          which documents are asked for (1)\n"
"  --progress FILE   file to keep the number of operations in\n"
"  --help            print this\n";

/* What a block begins with in the file; the documents have numbers of their changes. */
struct document {
	uint64_t number;
	uint64_t changes;
	char text[DOCUMENT - 2 * sizeof(uint64_t)];
};

struct slot {
	size_t block;	/* + 1; 0: empty */
	uint64_t used;
	bool dirty;
	struct document *documents;
};

static struct set {
	pthread_mutex_t lock;
	struct slot slots[WAYS];
} *sets;

/* Blocks in the order in which they were changed; some may have been written since. */
static struct {
	pthread_mutex_t lock;
	size_t *blocks;
	size_t most;
	size_t first;
	size_t count;
} changed = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct {
	pthread_mutex_t lock;
	int fd;
	size_t records;
	size_t end;
} records = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* On cache lines of their own: the clients are not to slow each other down. */
static struct client {
	uint64_t operations;
	uint64_t random;
	char pad[48];
} clients[MAX_CLIENTS];

static int data_fd;
static size_t nr_blocks, nr_sets, per_block, nr_documents;
static double zeta, eta;

static double parse_exponent(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value > 0 && value < 1))
		quit("--zipf '%s': give a number above 0 and below 1", text);
	return value;
}

static void parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "directory", required_argument, NULL, 'd' },
		{ "progress", required_argument, NULL, 'p' },
		{ "size", required_argument, NULL, 's' },
		{ "cache", required_argument, NULL, 'c' },
		{ "block", required_argument, NULL, 'b' },
		{ "clients", required_argument, NULL, 'n' },
		{ "update-every", required_argument, NULL, 'u' },
		{ "sync-every", required_argument, NULL, 'y' },
		{ "log-size", required_argument, NULL, 'l' },
		{ "dirty", required_argument, NULL, 'w' },
		{ "zipf", required_argument, NULL, 'z' },
		{ "seed", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	const size_t most = 1UL << 40;
	int option, at = 0;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, &at)) != -1) {
		const char *name = options[at].name;

		switch (option) {
		case 'd':
			conf.directory = optarg;
			break;
		case 'p':
			conf.progress = optarg;
			break;
		case 's':
			conf.size = parse_number(name, optarg, true, 1UL << 20, most);
			break;
		case 'c':
			conf.cache = parse_number(name, optarg, true, 1UL << 20, most);
			break;
		case 'b':
			conf.block = parse_number(name, optarg, true, 4UL << 10, 64UL << 10);
			if (conf.block & (conf.block - 1))
				quit("--block '%s': give a power of two", optarg);
			break;
		case 'n':
			conf.clients = parse_number(name, optarg, false, 1, MAX_CLIENTS);
			break;
		case 'u':
			conf.update_every = parse_number(name, optarg, false, 1, 1000000);
			break;
		case 'y':
			conf.sync_every = parse_number(name, optarg, false, 1, 1000000);
			break;
		case 'l':
			conf.log_size = parse_number(name, optarg, true, DOCUMENT, most);
			break;
		case 'w':
			conf.dirty = parse_number(name, optarg, false, 1, 100);
			break;
		case 'z':
			conf.zipf = parse_exponent(optarg);
			break;
		case 'r':
			conf.seed = parse_number(name, optarg, false, 1, 1000000);
			break;
		case 'h':
			help(usage);
		default:
			wrong_option(argv);
		}
	}
	end_options(argc, argv);
	if (!conf.directory)
		quit("give the directory for its files with --directory: see --help");
}

static double sum_of_zipf(size_t count)
{
	double sum = 0;
	size_t i;

	for (i = 1; i <= count; i++)
		sum += pow(i, -conf.zipf);
	return sum;
}

/*
 * A rank from 0, by Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (1994), as
 * YCSB has it.
 */
static size_t zipf_rank(uint64_t *random)
{
	double u = (double)(next_random(random) >> 11) / (1UL << 53), uz = u * zeta;
	size_t rank;

	if (uz < 1)
		return 0;
	if (uz < 1 + pow(0.5, conf.zipf))
		return 1;
	rank = nr_documents * pow(eta * u - eta + 1, 1 / (1 - conf.zipf));
	return rank < nr_documents ? rank : nr_documents - 1;
}

/* FNV-1a: the documents that are asked for often lie anywhere. */
static size_t scattered(size_t rank)
{
	uint64_t hash = 0xcbf29ce484222325;
	int i;

	for (i = 0; i < 8; i++) {
		hash = (hash ^ (rank & 0xff)) * 0x100000001b3;
		rank >>= 8;
	}
	return hash % nr_documents;
}

static int open_file(const char *name)
{
	char *path;
	int fd;

	if (asprintf(&path, "%s/%s", conf.directory, name) < 0)
		die("asprintf");
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		die(path);
	free(path);
	return fd;
}

static void write_all(int fd, const void *data, size_t size, size_t at, const char *what)
{
	errno = ENOSPC;	/* for a write that is short */
	if (pwrite(fd, data, size, at) != (ssize_t)size)
		die(what);
}

static void write_block(size_t block, const struct document *documents)
{
	write_all(data_fd, documents, conf.block, block * conf.block, "writing the data");
}

static void read_block(size_t block, struct document *documents)
{
	ssize_t n = pread(data_fd, documents, conf.block, block * conf.block);

	if (n < 0)
		die("reading the data");
	if ((size_t)n != conf.block || documents[0].number != block * per_block)
		quit("block %zu has not what was written to it", block);
}

/*
 * All of it is on disk before it is used, and never much of it is on the way there: a cgroup whose
 * pages all wait to be written can be OOM-killed.
 */
static void make_data(void)
{
	struct document *documents = calloc(per_block, DOCUMENT);
	uint64_t random = conf.seed;
	size_t block, i;

	if (!documents)
		die("calloc");
	data_fd = open_file("data");
	for (block = 0; block < nr_blocks; block++) {
		for (i = 0; i < per_block; i++) {
			documents[i].number = block * per_block + i;
			*(uint64_t *)documents[i].text = next_random(&random);
		}
		write_block(block, documents);
		if ((block + 1) * conf.block % (1UL << 20) < conf.block && fdatasync(data_fd))
			die("writing the data");
	}
	if (fsync(data_fd))
		die("writing the data");
	/* As such a store asks for: read no more than is wanted. */
	errno = posix_fadvise(data_fd, 0, 0, POSIX_FADV_RANDOM);
	if (errno)
		die("fadvise");
	free(documents);
}

static void make_cache(void)
{
	size_t slots, set, way;
	char *memory;

	nr_sets = conf.cache / conf.block / WAYS ?: 1;
	slots = nr_sets * WAYS;
	sets = calloc(nr_sets, sizeof(*sets));
	changed.most = slots * conf.dirty / 100 ?: 1;
	/* Each client may have put one in before it takes one out. */
	changed.blocks = calloc(changed.most + conf.clients, sizeof(size_t));
	memory = mmap(NULL, slots * conf.block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (!sets || !changed.blocks || memory == MAP_FAILED)
		die("memory for the cache");
	for (set = 0; set < nr_sets; set++) {
		pthread_mutex_init(&sets[set].lock, NULL);
		for (way = 0; way < WAYS; way++, memory += conf.block)
			sets[set].slots[way].documents = (void *)memory;
	}
}

static struct set *set_of(size_t block)
{
	return &sets[block % nr_sets];
}

static struct slot *find(struct set *set, size_t block)
{
	size_t way;

	for (way = 0; way < WAYS; way++)
		if (set->slots[way].block == block + 1)
			return &set->slots[way];
	return NULL;
}

static void clean(struct slot *slot)
{
	if (slot->dirty)
		write_block(slot->block - 1, slot->documents);
	slot->dirty = false;
}

/* The block's slot, in the place of the one that was used least recently; its set is locked. */
static struct slot *get(struct set *set, size_t block, uint64_t now)
{
	struct slot *slot = find(set, block);
	size_t way;

	if (!slot) {
		slot = &set->slots[0];
		for (way = 1; way < WAYS; way++)
			if (set->slots[way].used < slot->used)
				slot = &set->slots[way];
		clean(slot);
		read_block(block, slot->documents);
		slot->block = block + 1;
	}
	slot->used = now;
	return slot;
}

static void append(const struct document *document)
{
	bool full, due;

	pthread_mutex_lock(&records.lock);
	full = records.end + DOCUMENT > conf.log_size;
	if (full && ftruncate(records.fd, 0))
		die("the log");
	if (full)
		records.end = 0;
	write_all(records.fd, document, DOCUMENT, records.end, "the log");
	records.end += DOCUMENT;
	due = ++records.records % conf.sync_every == 0;
	pthread_mutex_unlock(&records.lock);
	if (due && fdatasync(records.fd))
		die("the log");
}

/* Note that a block was changed; have the oldest one written back if that makes too many. */
static void note_changed(size_t block)
{
	size_t size = changed.most + conf.clients, oldest = 0;
	struct slot *slot;
	struct set *set;
	bool many;

	pthread_mutex_lock(&changed.lock);
	changed.blocks[(changed.first + changed.count++) % size] = block;
	many = changed.count > changed.most;
	if (many) {
		oldest = changed.blocks[changed.first];
		changed.first = (changed.first + 1) % size;
		changed.count--;
	}
	pthread_mutex_unlock(&changed.lock);
	if (!many)
		return;
	set = set_of(oldest);
	pthread_mutex_lock(&set->lock);
	slot = find(set, oldest);
	if (slot)
		clean(slot);
	pthread_mutex_unlock(&set->lock);
}

static void operate(struct client *client, bool update)
{
	static uint64_t clock;
	size_t number = scattered(zipf_rank(&client->random)), block = number / per_block;
	struct set *set = set_of(block);
	struct document document, *inside;
	struct slot *slot;
	bool first = false;

	pthread_mutex_lock(&set->lock);
	slot = get(set, block, __atomic_add_fetch(&clock, 1, __ATOMIC_RELAXED));
	inside = &slot->documents[number % per_block];
	if (update) {
		inside->changes++;
		first = !slot->dirty;
		slot->dirty = true;
	}
	document = *inside;
	pthread_mutex_unlock(&set->lock);
	if (document.number != number)
		quit("document %zu is not where it was", number);
	if (update)
		append(&document);
	if (first)
		note_changed(block);
}

static void *serve(void *data)
{
	struct client *client = data;
	uint64_t i;

	for (i = 1;; i++) {
		operate(client, i % conf.update_every == 0);
		__atomic_store_n(&client->operations, i, __ATOMIC_RELAXED);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	uint64_t count;
	size_t i;

	parse_options(argc, argv);
	nr_blocks = conf.size / conf.block;
	per_block = conf.block / DOCUMENT;
	nr_documents = nr_blocks * per_block;
	zeta = sum_of_zipf(nr_documents);
	eta = (1 - pow(2.0 / nr_documents, 1 - conf.zipf)) / (1 - sum_of_zipf(2) / zeta);
	make_data();
	make_cache();
	records.fd = open_file("log");
	for (i = 0; i < conf.clients; i++) {
		clients[i].random = (conf.seed << 16) + i + 1;
		errno = pthread_create(&thread, NULL, serve, &clients[i]);
		if (errno)
			die("pthread_create");
	}
	for (;;) {
		usleep(REPORT_USEC);
		count = 0;
		for (i = 0; i < conf.clients; i++)
			count += __atomic_load_n(&clients[i].operations, __ATOMIC_RELAXED);
		write_progress(conf.progress, count);
	}
}
