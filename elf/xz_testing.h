#pragma once

#include <gtest/gtest.h>
#include <lzma.h>

#include <string>
#include <string_view>

namespace tributary::testing {

inline std::string Xz(std::string_view raw, uint32_t level = 6) {
  std::string stored(lzma_stream_buffer_bound(raw.size()), '\0');
  size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(level, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const uint8_t*>(raw.data()),
                                    raw.size(), reinterpret_cast<uint8_t*>(stored.data()), &size, stored.size()),
            LZMA_OK);
  stored.resize(size);
  return stored;
}

}  // namespace tributary::testing
