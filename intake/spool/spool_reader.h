#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "intake/codec/batch_decoder.h"
#include "intake/spool/spool.h"
#include "intake/spool/spool_segment.h"
#include "profile/batch.h"
#include "profile/dictionary.h"

namespace tributary::intake {

// Decodes one segment, batch by batch; all of them share one dictionary, which grows. Takes nothing on trust: a file
// that was damaged or made by somebody else costs at most its own size and the limits of a frame and a dictionary.
class SegmentReader {
 public:
  // `file` is the whole file. InvalidArgument: its header is damaged, or another segment's.
  static absl::StatusOr<std::unique_ptr<SegmentReader>> Open(std::string file, SegmentId segment);

  // sequence: 1, 2, …. nullopt: the end, or a torn tail behind it. InvalidArgument: damaged from here on.
  absl::StatusOr<std::optional<Batch>> Next();

  const SegmentHeader& header() const { return header_; }
  const SpoolTotals& read() const { return read_; }
  uint64_t read_bytes() const { return offset_; }  // up to the end of the batch that Next returned last

 private:
  SegmentReader(std::string file, SegmentHeader header);
  absl::StatusOr<Batch> Decode(const SpoolRecord& record);

  std::string file_;
  SegmentHeader header_;
  size_t offset_ = kSegmentHeaderBytes;
  SpoolTotals read_;
  std::shared_ptr<Dictionary> dictionary_;
  BatchDecoder decoder_;
};

}  // namespace tributary::intake
