// The control file: what a test writes for the stand-in runtime, and what it reads back.
//
// runtime.py has the same layout; a magic number and the size are compared when the file is mapped.

#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

constexpr uint64_t kMagic = 0x42554e52414b5531;  // "BUNRAKU1"
constexpr int kDevices = 16, kEvents = 256, kPulses = 1024, kText = 64;

struct Device {
  int32_t device_class;  // 0 none, 1 headset, 2 controller, 3 tracker
  int32_t role;          // 0 none, 1 left, 2 right
  int32_t connected;
  int32_t valid;
  int32_t result;
  int32_t has_state;  // whether the driver has legacy bindings
  int32_t activity;
  int32_t stick_type;  // of axis 0: 1 trackpad, 2 joystick
  float matrix[12];    // standing universe
  float velocity[3];
  float angular[3];
  float noise;    // alternates on x from read to read [m]
  float battery;  // 0 to 1, negative: none
  uint64_t pressed;
  uint64_t touched;
  float axis[10];
  uint32_t packet;
  uint32_t pad;
  char serial[kText];
  char model[kText];
  char type[kText];
};

struct QueuedEvent {
  uint64_t posted;  // CLOCK_MONOTONIC [ns]
  uint32_t type;
  uint32_t device;
  uint32_t button;
  uint32_t pad;
};

struct Pulse {
  uint64_t time;  // CLOCK_MONOTONIC [ns]
  uint32_t device;
  uint32_t axis;
  uint32_t microseconds;
  uint32_t too_soon;  // came within 5 ms of the one before on that device and axis
};

struct Control {
  uint64_t magic;
  uint64_t size;
  // test -> runtime, guarded by the seqlock
  uint64_t sequence;  // odd while the test writes
  Device devices[kDevices];
  QueuedEvent events[kEvents];
  uint64_t event_count;
  float raw_to_standing[12];
  float seated_to_standing[12];
  int32_t init_error;
  int32_t server_running;
  int32_t headset_present;
  int32_t input_available;
  int32_t dashboard;     // state calls succeed and are all zero
  int32_t system_known;  // whether IVRSystem_023 is provided
  float frequency;
  uint32_t hold;  // reads of poses wait while this is set
  char version[kText];
  // runtime -> test
  uint64_t attempts;  // calls of Init
  uint64_t inits;     // those that succeeded
  uint64_t shutdowns;
  uint64_t pose_reads;  // counted when a read begins
  uint64_t polls;
  uint64_t acknowledged;
  uint64_t pulse_count;
  uint64_t pid;
  int32_t application;
  int32_t last_origin;
  float last_ahead;
  uint32_t gave_up;  // waits for the test that took too long
  Pulse pulses[kPulses];
};

inline Control *g = nullptr;

inline void count(uint64_t &counter) { __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST); }

inline bool map_control() {
  if (g) return true;
  const char *path = getenv("BUNRAKU_STAND_IN_STEAMVR");
  if (!path) {
    fprintf(stderr, "stand-in SteamVR: BUNRAKU_STAND_IN_STEAMVR does not name the control file\n");
    return false;
  }
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    perror("stand-in SteamVR: control file");
    return false;
  }
  void *memory = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  off_t length = lseek(fd, 0, SEEK_END);
  close(fd);
  if (memory == MAP_FAILED) return false;
  Control *control = static_cast<Control *>(memory);
  if (length < off_t(sizeof(Control)) || control->magic != kMagic || control->size != sizeof(Control)) {
    fprintf(stderr, "stand-in SteamVR: runtime.py and vrclient.cpp disagree on the control file: %ld and %zu bytes\n",
            long(length), sizeof(Control));
    munmap(memory, sizeof(Control));
    return false;
  }
  g = control;
  return true;
}

inline void unmap_control() {
  if (g) munmap(g, sizeof(Control));
  g = nullptr;
}

// Copies guarded memory. The number of tries is bounded, so a test that dies while writing cannot hang the program.
inline void copy_guarded(void *to, const void *from, size_t bytes) {
  for (int attempt = 0; attempt < 2000; ++attempt) {
    uint64_t before = __atomic_load_n(&g->sequence, __ATOMIC_ACQUIRE);
    if (!(before & 1)) {
      memcpy(to, from, bytes);
      __atomic_thread_fence(__ATOMIC_ACQUIRE);
      if (__atomic_load_n(&g->sequence, __ATOMIC_ACQUIRE) == before) return;
    }
    usleep(50);
  }
  __atomic_fetch_add(&g->gave_up, 1, __ATOMIC_SEQ_CST);
  memcpy(to, from, bytes);
}

inline bool get_device(uint32_t index, Device *device) {
  if (index >= uint32_t(kDevices)) return false;
  copy_guarded(device, &g->devices[index], sizeof *device);
  return device->device_class != 0;
}
