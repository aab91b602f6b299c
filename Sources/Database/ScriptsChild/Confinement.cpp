#include "Confinement.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace scripts {

static bool limit(__rlimit_resource resource, rlim_t value) {
  rlimit both{value, value};
  return setrlimit(resource, &both) == 0;
}

void dropInheritance() {
  signal(SIGPIPE, SIG_IGN);
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 3, ~0u, 0) != 0)
#endif
  {
    for (int descriptor = 3; descriptor < 65536; descriptor++) close(descriptor);
  }
  // Each arena of a thread would reserve 64 MiB of addresses.
  mallopt(M_ARENA_MAX, 1);
  // Dates depend on the document and not on the machine.
  clearenv();
  setenv("TZ", "UTC", 1);
  setenv("LC_ALL", "C.UTF-8", 1);
}

static size_t mappedBytes() {
  size_t pages = 0;
  if (FILE* file = fopen("/proc/self/statm", "r")) {
    if (fscanf(file, "%zu", &pages) != 1) pages = 0;
    fclose(file);
  }
  return pages * size_t(sysconf(_SC_PAGESIZE));
}

// Allows what memory, threads, time and the two descriptors need, and answers EPERM to everything else.
static bool refuseSystemCalls() {
#if defined(__x86_64__)
  constexpr unsigned architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  constexpr unsigned architecture = AUDIT_ARCH_AARCH64;
#else
  return false;
#endif
#define ALLOW(name) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
  sock_filter program[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    ALLOW(read),
    ALLOW(write),
    ALLOW(futex),
    ALLOW(mmap),
    ALLOW(munmap),
    ALLOW(mremap),
    ALLOW(mprotect),
    ALLOW(madvise),
    ALLOW(brk),
    ALLOW(exit),
    ALLOW(exit_group),
    ALLOW(ppoll),
#ifdef SYS_poll
    ALLOW(poll),
#endif
#ifdef SYS_time
    ALLOW(time),
#endif
    ALLOW(clock_gettime),
    ALLOW(clock_nanosleep),
    ALLOW(gettimeofday),
    ALLOW(getrandom),
    ALLOW(getrusage),
    ALLOW(sched_yield),
    ALLOW(sched_getaffinity),
    ALLOW(set_robust_list),
#ifdef SYS_rseq
    ALLOW(rseq),
#endif
    ALLOW(rt_sigaction),
    ALLOW(rt_sigprocmask),
    ALLOW(rt_sigreturn),
    ALLOW(sigaltstack),
    ALLOW(restart_syscall),
    ALLOW(getpid),
    ALLOW(gettid),
    ALLOW(tgkill),
#ifdef SYS_clone3
    // Its flags are in memory, which a filter can't read; the C library then calls clone.
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
#endif
    // A thread of the engine names itself when it begins, which may be after this, and crashes if it can't.
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 4),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_NAME, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
#undef ALLOW
  sock_fprog filter{sizeof program / sizeof *program, program};
  // A kernel without it leaves the other limits.
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

bool confine(size_t bytes, bool* filters) {
  size_t mapped = mappedBytes();
  if (mapped == 0) return false;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return false;
  if (!limit(RLIMIT_AS, mapped + bytes) || !limit(RLIMIT_CORE, 0) || !limit(RLIMIT_FSIZE, 0) ||
      !limit(RLIMIT_NOFILE, 3)) {
    return false;
  }
  *filters = refuseSystemCalls();
  return true;
}

}  // namespace scripts
