// A stand-in for SteamVR's client library: what libopenvr_api loads as <runtime>/bin/linux64/vrclient.so.
//
// It serves IVRSystem_023 to an unmodified openvr binding, from a file that a test maps and writes: devices, events
// and knobs go in, counters and haptic pulses come out (control.h). Linux on x86-64 only: the loader expects the
// Itanium C++ ABI, and the seqlock relies on stores becoming visible in program order.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "poses.h"

namespace {

constexpr uint32_t kInvalidIndex = 0xFFFFFFFF;
constexpr uint64_t kPulseGap = 5'000'000;  // [ns], the shortest time between two pulses on one axis

enum InitError { kOk = 0, kUnknown = 1, kInterfaceNotFound = 105, kNotInitialized = 109, kNoServer = 121 };
enum PropertyError { kPropertyOk = 0, kBufferTooSmall = 3, kUnknownProperty = 4, kInvalidDevice = 5, kNotProvided = 7 };
enum Application { kBackground = 3 };

// As in the public C header, on Linux.
#pragma pack(push, 4)
struct ControllerState {
  uint32_t packet;
  uint64_t pressed;
  uint64_t touched;
  float axis[5][2];
};
struct VrEvent {
  uint32_t type;
  uint32_t device;
  float age;
  uint32_t button;
  uint8_t rest[44];
};
#pragma pack(pop)
static_assert(sizeof(ControllerState) == 60, "VRControllerState_t");
static_assert(sizeof(VrEvent) == 60, "VREvent_t");

uint64_t g_next_event = 0;  // of this session: events from before it are not seen
uint64_t g_last_pulse[kDevices][8];
bool g_initialized = false;

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1'000'000'000u + uint64_t(t.tv_nsec);
}

// A library that is unloaded must not leave the file mapped.
__attribute__((destructor)) void unloaded() { unmap_control(); }

// ---- IVRSystem_023: plain functions, no `this` ---------------------------------------------------------------------

// Bounded: a test that dies must not hang the program.
void wait_while_held() {
  for (int i = 0; i < 20'000; ++i) {
    if (!__atomic_load_n(&g->hold, __ATOMIC_ACQUIRE)) return;
    usleep(500);
  }
  __atomic_fetch_add(&g->gave_up, 1, __ATOMIC_SEQ_CST);
}

void GetDeviceToAbsoluteTrackingPose(uint32_t origin, float ahead, TrackedPose *poses, uint32_t n) {
  bool odd = g->pose_reads & 1;
  g->last_origin = int32_t(origin);
  g->last_ahead = ahead;
  count(g->pose_reads);
  wait_while_held();
  static Device devices[kDevices];
  copy_guarded(devices, g->devices, sizeof devices);
  for (uint32_t i = 0; i < n; ++i) {
    if (i < uint32_t(kDevices) && devices[i].device_class)
      make_pose(devices[i], int32_t(origin), ahead, odd, &poses[i]);
    else
      memset(&poses[i], 0, sizeof poses[i]);
  }
}

uint32_t GetTrackedDeviceActivityLevel(uint32_t index) {
  Device device;
  return get_device(index, &device) ? uint32_t(device.activity) : uint32_t(-1);
}

uint32_t GetTrackedDeviceIndexForControllerRole(int32_t role) {
  Device device;
  for (uint32_t i = 0; role && i < uint32_t(kDevices); ++i)
    if (get_device(i, &device) && device.device_class == 2 && device.role == role) return i;
  return kInvalidIndex;
}

int32_t GetControllerRoleForTrackedDeviceIndex(uint32_t index) {
  Device device;
  return get_device(index, &device) ? device.role : 0;
}

int32_t GetTrackedDeviceClass(uint32_t index) {
  Device device;
  return get_device(index, &device) ? device.device_class : 0;
}

bool IsTrackedDeviceConnected(uint32_t index) {
  Device device;
  return get_device(index, &device) && device.connected;
}

void set_error(int32_t *error, int32_t value) {
  if (error) *error = value;
}

bool GetBoolProperty(uint32_t index, int32_t property, int32_t *error) {
  Device device;
  if (!get_device(index, &device)) return set_error(error, kInvalidDevice), false;
  set_error(error, kPropertyOk);
  if (property == 1026) return device.battery >= 0;  // ProvidesBattery
  return set_error(error, kUnknownProperty), false;
}

float GetFloatProperty(uint32_t index, int32_t property, int32_t *error) {
  Device device;
  if (!get_device(index, &device)) return set_error(error, kInvalidDevice), 0.0f;
  set_error(error, kPropertyOk);
  if (property == 1012 && device.battery >= 0) return device.battery;
  if (property == 2002 && device.device_class == 1 && g->frequency != 0) return g->frequency;
  return set_error(error, property == 1012 || property == 2002 ? kNotProvided : kUnknownProperty), 0.0f;
}

int32_t GetInt32Property(uint32_t index, int32_t property, int32_t *error) {
  Device device;
  if (!get_device(index, &device)) return set_error(error, kInvalidDevice), 0;
  set_error(error, kPropertyOk);
  if (property == 1029) return device.device_class;
  if (property == 3002 && device.stick_type) return device.stick_type;  // Axis0Type
  if (property == 3003 && device.device_class == 2) return 3;           // Axis1Type: trigger
  return set_error(error, property >= 3002 && property <= 3006 ? kNotProvided : kUnknownProperty), 0;
}

uint32_t GetStringProperty(uint32_t index, int32_t property, char *value, uint32_t size, int32_t *error) {
  Device device;
  if (!get_device(index, &device)) return set_error(error, kInvalidDevice), 0;
  const char *text = property == 1000   ? "stand_in"
                     : property == 1001 ? device.model
                     : property == 1002 ? device.serial
                     : property == 1005 ? "bunraku"
                     : property == 7000 ? device.type
                                        : nullptr;
  if (!text) return set_error(error, kUnknownProperty), 0;
  if (!*text) return set_error(error, kNotProvided), 0;
  uint32_t needed = uint32_t(strlen(text)) + 1;
  if (!value || size < needed) return set_error(error, kBufferTooSmall), needed;
  memcpy(value, text, needed);
  return set_error(error, kPropertyOk), needed;
}

bool PollNextEvent(VrEvent *event, uint32_t bytes) {
  count(g->polls);
  if (!event || bytes != sizeof *event) return false;
  uint64_t posted = __atomic_load_n(&g->event_count, __ATOMIC_ACQUIRE);
  if (g_next_event + kEvents < posted) g_next_event = posted - kEvents;
  if (g_next_event >= posted) return false;
  QueuedEvent queued;
  copy_guarded(&queued, &g->events[g_next_event++ % kEvents], sizeof queued);
  memset(event, 0, sizeof *event);
  event->type = queued.type;
  event->device = queued.device;
  event->button = queued.button;
  event->age = float(double(now_ns() - queued.posted) * 1e-9);
  return true;
}

bool GetControllerState(uint32_t index, ControllerState *state, uint32_t bytes) {
  Device device;
  // A state of any other size is the packing bug of old bindings: it stays as it was.
  if (!state || bytes != sizeof *state) return false;
  memset(state, 0, sizeof *state);
  if (!get_device(index, &device) || device.device_class != 2 || !device.connected) return false;
  if (g->dashboard || !device.has_state || (device.role != 1 && device.role != 2)) return true;
  state->packet = device.packet;
  state->pressed = device.pressed;
  state->touched = device.touched;
  memcpy(state->axis, device.axis, sizeof state->axis);
  return true;
}

bool GetControllerStateWithPose(uint32_t origin, uint32_t index, ControllerState *state, uint32_t bytes,
                                TrackedPose *pose) {
  Device device;
  if (!GetControllerState(index, state, bytes) || !get_device(index, &device)) return false;
  make_pose(device, int32_t(origin), 0, false, pose);
  return true;
}

void TriggerHapticPulse(uint32_t index, uint32_t axis, uint16_t microseconds) {
  if (index >= uint32_t(kDevices) || axis >= 8) return;
  uint64_t now = now_ns(), &last = g_last_pulse[index][axis];
  uint64_t slot = __atomic_load_n(&g->pulse_count, __ATOMIC_ACQUIRE) % kPulses;
  g->pulses[slot] = {now, index, axis, microseconds, last && now - last < kPulseGap};
  last = now;
  count(g->pulse_count);
}

bool IsInputAvailable() { return g->input_available; }
bool IsSteamVRDrawingControllers() { return g->dashboard; }
bool ShouldApplicationPause() { return g->dashboard; }
void AcknowledgeQuit() { count(g->acknowledged); }
const char *GetRuntimeVersion() { return g->version; }

// A null slot would be a segmentation fault without a name: every function that is not served tells its number.
template <int slot>
void not_served() {
  fprintf(stderr, "stand-in SteamVR: IVRSystem function %d is not served\n", slot);
  abort();
}

using Function = void (*)();
constexpr int kSlots = 47;
Function g_system[kSlots];

template <int slot>
void fill() {
  g_system[slot] = not_served<slot>;
  if constexpr (slot > 0) fill<slot - 1>();
}

template <typename F>
void serve(int slot, F function) {
  g_system[slot] = reinterpret_cast<Function>(function);
}

void fill_system_table() {
  fill<kSlots - 1>();
  serve(11, GetDeviceToAbsoluteTrackingPose);
  serve(15, GetTrackedDeviceActivityLevel);
  serve(17, GetTrackedDeviceIndexForControllerRole);
  serve(18, GetControllerRoleForTrackedDeviceIndex);
  serve(19, GetTrackedDeviceClass);
  serve(20, IsTrackedDeviceConnected);
  serve(21, GetBoolProperty);
  serve(22, GetFloatProperty);
  serve(23, GetInt32Property);
  serve(27, GetStringProperty);
  serve(29, PollNextEvent);
  serve(34, GetControllerState);
  serve(35, GetControllerStateWithPose);
  serve(36, TriggerHapticPulse);
  serve(39, IsInputAvailable);
  serve(40, IsSteamVRDrawingControllers);
  serve(41, ShouldApplicationPause);
  serve(44, AcknowledgeQuit);
  serve(46, GetRuntimeVersion);
}

// ---- the object that the loader calls: seven virtual functions in this order, no virtual destructor ---------------

class Client {
 public:
  virtual int32_t Init(int32_t application, const char *) {
    if (!map_control()) return kUnknown;
    count(g->attempts);
    int32_t error = g->init_error;
    if (!error && application == kBackground && !g->server_running) error = kNoServer;
    if (error) {
      unmap_control();  // the loader unloads this library without Cleanup
      return error;
    }
    g->server_running = 1;
    g->application = application;
    g->pid = uint64_t(getpid());
    g_next_event = __atomic_load_n(&g->event_count, __ATOMIC_ACQUIRE);
    memset(g_last_pulse, 0, sizeof g_last_pulse);
    fill_system_table();
    g_initialized = true;
    count(g->inits);
    return kOk;
  }

  virtual void Cleanup() {
    if (g) count(g->shutdowns);
    unmap_control();
    g_initialized = false;
  }

  virtual int32_t IsInterfaceVersionValid(const char *version) {
    bool known = g && g->system_known && !strcmp(version, "IVRSystem_023");
    return known ? kOk : kInterfaceNotFound;
  }

  virtual void *GetGenericInterface(const char *name, int32_t *error) {
    bool known = g && g->system_known && !strcmp(name, "FnTable:IVRSystem_023");
    if (error) *error = !g_initialized ? kNotInitialized : known ? kOk : kInterfaceNotFound;
    return g_initialized && known ? g_system : nullptr;
  }

  virtual bool BIsHmdPresent() {  // also asked without Init, and then unloaded without Cleanup
    if (!map_control()) return false;
    bool present = g->headset_present;
    if (!g_initialized) unmap_control();
    return present;
  }

  virtual const char *GetEnglishStringForHmdError(int32_t error) { return text(error); }
  virtual const char *GetIDForVRInitError(int32_t error) { return text(error); }

 private:
  static const char *text(int32_t error) {
    static char buffer[32];
    snprintf(buffer, sizeof buffer, "VRInitError %d", error);
    return buffer;
  }
};

Client g_client;

}  // namespace

extern "C" __attribute__((visibility("default"))) void *VRClientCoreFactory(const char *name, int *error) {
  bool known = !strcmp(name, "IVRClientCore_003");
  if (error) *error = known ? kOk : kInterfaceNotFound;
  return known ? &g_client : nullptr;
}
