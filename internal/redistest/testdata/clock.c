// A wall clock that runs ahead of the machine's by the nanoseconds in the file AHEAD, which may change at any time. It is
// loaded before a process' own libraries; clocks that only measure stay as they are.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead;

__attribute__((constructor)) static void begin(void) {
	const char *path = getenv("AHEAD");
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (file < 0) return;
	void *at = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
	if (at != MAP_FAILED) ahead = at;
	close(file);
}

int clock_gettime(clockid_t id, struct timespec *to) {
	int failed = syscall(SYS_clock_gettime, id, to);
	if (failed || !ahead || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return failed;
	int64_t ns = to->tv_sec * INT64_C(1000000000) + to->tv_nsec + *ahead;
	to->tv_sec = ns / 1000000000;
	to->tv_nsec = ns % 1000000000;
	return 0;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone) {
	struct timespec now;
	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
	to->tv_sec = now.tv_sec;
	to->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *to) {
	struct timespec now;
	if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
	if (to) *to = now.tv_sec;
	return now.tv_sec;
}
