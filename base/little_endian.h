#pragma once

#include <cstddef>
#include <cstdint>

namespace tributary {

// Store and load unsigned integers with the lowest byte first. Compilers turn each call into a single load or store.

template <typename T>
void StoreLittleEndian(char* to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<char>(value >> (8 * i));
}

template <typename T>
T LoadLittleEndian(const char* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(T{static_cast<uint8_t>(from[i])} << (8 * i)));
  }
  return value;
}

}  // namespace tributary
