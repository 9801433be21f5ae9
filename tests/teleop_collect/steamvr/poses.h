// Poses as the binding sees them, and rigid motions of them.

#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "control.h"

enum Origin { kSeated = 0, kStanding = 1, kRaw = 2 };

struct Matrix34 {
  float m[3][4];
};

struct TrackedPose {
  Matrix34 matrix;
  float velocity[3];
  float angular[3];
  int32_t result;
  bool valid;
  bool connected;
};
static_assert(sizeof(TrackedPose) == 80, "TrackedDevicePose_t");

// a^-1 b, both 3x4 rigid
inline void inverse_times(const float *a, const float *b, float *out) {
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 4; ++c) {
      float sum = 0;
      for (int k = 0; k < 3; ++k) sum += a[4 * k + r] * (c == 3 ? b[4 * k + 3] - a[4 * k + 3] : b[4 * k + c]);
      out[4 * r + c] = sum;
    }
}

// a^-1 v, rotation only
inline void rotate_back(const float *a, float *v) {
  float in[3] = {v[0], v[1], v[2]};
  for (int r = 0; r < 3; ++r) v[r] = a[r] * in[0] + a[4 + r] * in[1] + a[8 + r] * in[2];
}

// Moves a pose by its own velocities for a time [s], as a prediction does.
inline void advance(float *m, const float *velocity, const float *angular, float seconds) {
  if (seconds == 0) return;
  for (int r = 0; r < 3; ++r) m[4 * r + 3] += velocity[r] * seconds;
  float rate = sqrtf(angular[0] * angular[0] + angular[1] * angular[1] + angular[2] * angular[2]);
  if (rate * fabsf(seconds) < 1e-9f) return;
  float x = angular[0] / rate, y = angular[1] / rate, z = angular[2] / rate;
  float s = sinf(rate * seconds), c = cosf(rate * seconds), v = 1 - c;
  float turn[3][3] = {{c + x * x * v, x * y * v - z * s, x * z * v + y * s},
                      {y * x * v + z * s, c + y * y * v, y * z * v - x * s},
                      {z * x * v - y * s, z * y * v + x * s, c + z * z * v}};
  for (int col = 0; col < 3; ++col) {
    float old[3] = {m[col], m[4 + col], m[8 + col]};
    for (int r = 0; r < 3; ++r) m[4 * r + col] = turn[r][0] * old[0] + turn[r][1] * old[1] + turn[r][2] * old[2];
  }
}

inline void make_pose(const Device &device, int32_t origin, float ahead, bool odd, TrackedPose *pose) {
  memset(pose, 0, sizeof *pose);
  pose->connected = device.connected != 0;
  pose->valid = device.valid != 0;
  pose->result = device.result;
  float m[12], velocity[3], angular[3];
  memcpy(m, device.matrix, sizeof m);
  memcpy(velocity, device.velocity, sizeof velocity);
  memcpy(angular, device.angular, sizeof angular);
  advance(m, velocity, angular, ahead);
  m[3] += odd ? device.noise : -device.noise;
  if (origin != kStanding) {
    const float *zero = origin == kSeated ? g->seated_to_standing : g->raw_to_standing;
    float standing[12];
    memcpy(standing, m, sizeof m);
    inverse_times(zero, standing, m);
    rotate_back(zero, velocity);
    rotate_back(zero, angular);
  }
  memcpy(pose->matrix.m, m, sizeof m);
  memcpy(pose->velocity, velocity, sizeof velocity);
  memcpy(pose->angular, angular, sizeof angular);
}
