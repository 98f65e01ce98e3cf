/* Functions of glibc 2.35 and 2.36 that libraries of Debian 12 call, for a machine with glibc 2.34. scripts/bundle makes
 * lib/libtroupe_compat.so of it, and changes those libraries so that they take the functions from there, not from glibc.
 * Thread rule: any thread. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

/* glibc 2.36, which libstdc++ and libarchive call: random bytes of the kernel. Like glibc's it cannot fail, so it ends the process. */
void arc4random_buf(void* to, size_t bytes) {
  char* next = to;
  while (bytes > 0) {
    const ssize_t got = getrandom(next, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) abort();
    next += got;
    bytes -= (size_t)got;
  }
}

uint32_t arc4random(void) {
  uint32_t value;
  arc4random_buf(&value, sizeof(value));
  return value;
}

/* glibc 2.35, which libgcc's unwinder calls for every frame of an exception: the loaded file that has this address. */
typedef int FindObject(void* address, struct dl_find_object* result);

struct Search {
  uintptr_t address;
  struct dl_find_object* result;
};

static int look_into(struct dl_phdr_info* file, size_t size, void* data) {
  (void)size;
  struct Search* const search = data;
  uintptr_t begin = UINTPTR_MAX, end = 0, frames = 0;
  int covers = 0;
  for (int i = 0; i < file->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &file->dlpi_phdr[i];
    const uintptr_t from = file->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_LOAD) {
      if (from < begin) begin = from;
      if (from + part->p_memsz > end) end = from + part->p_memsz;
      if (search->address - from < part->p_memsz) covers = 1;
    } else if (part->p_type == PT_GNU_EH_FRAME) {
      frames = from;
    }
  }
  if (!covers || !frames) return covers ? -1 : 0;
  search->result->dlfo_flags = 0;
  search->result->dlfo_map_start = (void*)begin;
  search->result->dlfo_map_end = (void*)end;
  search->result->dlfo_link_map = NULL; /* the unwinder does not read it */
  search->result->dlfo_eh_frame = (void*)frames;
  return 1;
}

static FindObject* own;

/* By name: in the usual search this library may come before glibc. */
__attribute__((constructor)) static void look_for_glibcs_own(void) {
  void* const glibc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (glibc) own = (FindObject*)dlvsym(glibc, "_dl_find_object", "GLIBC_2.35");
}

int _dl_find_object(void* address, struct dl_find_object* result) {
  if (own) return own(address, result);
  struct Search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}
