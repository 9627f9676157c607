#include "intake/codec/decode_work.h"

#include <gtest/gtest.h>

#include "intake/codec/codec_testing.h"
#include "intake/testing/batch_generator_testing.h"

namespace tributary::intake {
namespace {

TEST(DecodeWork, CountsWhatABatchDecodesTo) {
  BatchGenerator generator(1);
  BatchEncoder encoder(1);
  BatchDecoder decoder(1);
  Dictionary dictionary;
  const IncomingBatch batch = DecodeAll(encoder.Encode(generator.Next(5'000, 100)), decoder, dictionary);
  const uint64_t records = batch.samples.size() + batch.events.size() + WorkOf(batch.definitions);
  const uint64_t work = decoder.TakeWork();
  EXPECT_GT(work, records) << "and the unpacked bytes";
  EXPECT_LT(work, 20 * records);
  EXPECT_EQ(decoder.TakeWork(), 0u);
}

TEST(DecodeWork, CountsMessagesThatAreRefused) {
  BatchGenerator generator(1);
  BatchEncoder encoder(1);
  const Frame first = Unframe(encoder.Encode(generator.Next(5'000)).back());
  BatchDecoder other(1);
  Batch batch = generator.Next(100);
  const Frame second = Unframe(encoder.Encode(batch).back());
  EXPECT_FALSE(other.Decode(second.type, second.sequence, second.payload).ok()) << "continues at other counts";
  const uint64_t refused_at_once = other.TakeWork();
  ASSERT_TRUE(other.Decode(first.type, first.sequence, first.payload).ok());
  const uint64_t decoded = other.TakeWork();
  EXPECT_GT(decoded, refused_at_once);
  // The same definitions again: the second message is refused after the columns were unpacked.
  EXPECT_FALSE(other.Decode(first.type, first.sequence, first.payload).ok());
  EXPECT_GT(other.TakeWork(), 0u);
}

TEST(DecodeWork, CountsAnEviction) {
  BatchGenerator generator(1);
  BatchEncoder encoder(1);
  BatchDecoder decoder(1);
  Dictionary dictionary;
  DecodeAll(encoder.Encode(generator.Next(20'000)), decoder, dictionary);
  const uint64_t ids = decoder.have().nodes;
  decoder.TakeWork();
  generator.Evict();
  const Batch batch = generator.Next(0);
  encoder = BatchEncoder::Following(2, &encoder, *batch.dictionary);
  const Frame frame = Unframe(encoder.Encode(batch).back());
  ASSERT_TRUE(decoder.Decode(frame.type, frame.sequence, frame.payload).ok());
  EXPECT_GE(decoder.TakeWork(), WorkOfRebuilding(ids));
}

}  // namespace
}  // namespace tributary::intake
