#include "tasks/image_prompts.h"

#include <algorithm>

#include "base/check.h"
#include "base/handle_access.h"
#include "base/message.h"
#include "image/picture.h"

namespace vkformer {
namespace {

using Kind = ImagePromptFacts::Kind;

Result<std::string> token_named(const TaskModel& task, int64_t id, const char* what) {
  const std::string* token = task.tokenizer->id_to_token(id);
  if (token != nullptr) return *token;
  return invalid_file(message({"[", what, "] of ", task.config.where(), " is ", id,
                               ", which names no token of tokenizer.json; the files belong to "
                               "different models."}));
}

// A token of tokenizer_config.json; `usual` where it names none.
Result<std::string> configured_token(const TaskModel& task, const std::string& key,
                                     const std::string& usual) {
  if (!task.tokenizer_config.has(key)) return usual;
  return special_token(task.tokenizer_config, key);
}

std::string repeated(const std::string& text, int64_t count) {
  std::string all;
  all.reserve(text.size() * static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) all += text;
  return all;
}

size_t count_of(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

// Writes what stands for the pictures of one prompt.
class ImageWords {
 public:
  static Result<ImageWords> create(const TaskModel& task);

  // The text with a placeholder for each picture, where it has none.
  std::string placed(const std::string& text, size_t pictures) const;
  // What a placeholder becomes, for a picture whose images have `tokens` tokens each.
  std::string expanded(const PromptImages& picture, int64_t tokens) const;
  // The text with its placeholders replaced.
  std::string replaced(const std::string& text, const std::vector<std::string>& with) const;
  const std::string& placeholder() const { return placeholder_; }

 private:
  explicit ImageWords(Kind kind) : kind_(kind) {}
  std::string tiles(const PromptImages& picture, int64_t tokens) const;

  Kind kind_;
  std::string placeholder_;
  std::string token_;  // of an image
  std::string begin_;  // kBounded, or around placeholders of kRepeated
  std::string end_;
  std::string start_;  // of a text: kLeading
  std::string fake_;   // kTiles: around images
  std::string whole_;  // kTiles: before the whole picture
};

Result<ImageWords> ImageWords::create(const TaskModel& task) {
  const ImagePromptFacts& facts = task.facts().images;
  ImageWords words(facts.kind);
  VKF_ASSIGN(words.token_, token_named(task, facts.token, "image_token_id"));
  VKF_ASSIGN(words.placeholder_, image_placeholder(task));
  if (facts.begin >= 0 && facts.end >= 0) {
    VKF_ASSIGN(words.begin_, token_named(task, facts.begin, "the token before an image"));
    VKF_ASSIGN(words.end_, token_named(task, facts.end, "the token after an image"));
  }
  if (facts.kind == Kind::kLeading) {
    VKF_ASSIGN(words.start_, configured_token(task, "bos_token", "<bos>"));
  }
  if (facts.kind == Kind::kTiles) {
    VKF_ASSIGN(words.fake_,
               configured_token(task, "fake_image_token", "<fake_token_around_image>"));
    VKF_ASSIGN(words.whole_, configured_token(task, "global_image_token", "<global-img>"));
  }
  return words;
}

std::string ImageWords::placed(const std::string& text, size_t pictures) const {
  const bool framed = kind_ == Kind::kRepeated;
  const std::string one = framed ? begin_ + placeholder_ + end_ : placeholder_;
  return repeated(one, static_cast<int64_t>(pictures)) + text;
}

// As Idefics3's processor has them: a line of text for each row of tiles, and an empty line before
// the whole.
std::string ImageWords::tiles(const PromptImages& picture, int64_t tokens) const {
  const std::string image = repeated(token_, tokens);
  std::string all;
  for (int64_t row = 1; row <= picture.rows; ++row) {
    for (int64_t column = 1; column <= picture.columns; ++column) {
      all += fake_ + "<row_" + std::to_string(row) + "_col_" + std::to_string(column) + ">" + image;
    }
    all += "\n";
  }
  if (picture.rows > 0) all += "\n";
  return all + fake_ + whole_ + image + fake_;
}

std::string ImageWords::expanded(const PromptImages& picture, int64_t tokens) const {
  if (kind_ == Kind::kTiles) return tiles(picture, tokens);
  const std::string image = repeated(token_, tokens);
  return kind_ == Kind::kBounded ? "\n\n" + begin_ + image + end_ + "\n\n" : image;
}

std::string ImageWords::replaced(const std::string& text,
                                 const std::vector<std::string>& with) const {
  std::string all;
  size_t from = 0;
  for (const std::string& image : with) {
    const size_t at = text.find(placeholder_, from);
    all += text.substr(from, at - from) + image;
    from = at + placeholder_.size();
  }
  if (kind_ == Kind::kLeading) all += start_;
  all += text.substr(from);
  return kind_ == Kind::kLeading ? all + "\n" : all;
}

Status check_picture(const Picture* picture, size_t number) {
  if (picture != nullptr && HandleAccess::impl(*picture) != nullptr) return {};
  return invalid_argument(message(
      {"Picture [", number, "] of the prompt holds no pixels; give one that was not moved."}));
}

Result<PromptImages> read_one(const TaskModel& task, const Picture* picture, size_t number) {
  VKF_CHECK(check_picture(picture, number));
  auto made = (*task.images)->process(*HandleAccess::impl(*picture));
  if (made) return made;
  return made.error().with_context("Picture " + std::to_string(number + 1));
}

Result<std::vector<PromptImages>> read_pictures(const TaskModel& task,
                                                const PromptWithPictures& prompt) {
  if (!*task.images) return task.images->error();
  std::vector<PromptImages> all;
  for (const Picture* picture : prompt.pictures) {
    VKF_ASSIGN(PromptImages made, read_one(task, picture, all.size()));
    all.push_back(std::move(made));
  }
  return all;
}

// Whether the text begins with the token that a tokenizer would put there again.
Result<bool> is_started(const TaskModel& task, const std::string& text) {
  VKF_ASSIGN(const std::string start, special_token(task.tokenizer_config, "bos_token"));
  return !start.empty() && text.starts_with(start);
}

}  // namespace

Result<std::string> image_placeholder(const TaskModel& task) {
  const ImagePromptFacts& facts = task.facts().images;
  if (facts.kind == Kind::kNone) {
    return unsupported(message({"[pictures] a ", task.facts().architecture,
                                " reads no pictures in its prompts; give texts alone, or use a "
                                "model that does (vkformer families lists them)."}));
  }
  if (facts.kind == Kind::kBounded) return token_named(task, facts.begin, "boi_token_index");
  return token_named(task, facts.token, "image_token_id");
}

Result<ImagePrompt> make_image_prompt(const TaskModel& task, const PromptWithPictures& prompt,
                                      size_t index, SpecialTokens special_tokens) {
  VKF_ASSIGN(const ImageWords words, ImageWords::create(task));
  const size_t pictures = prompt.pictures.size();
  const size_t places = count_of(prompt.text, words.placeholder());
  if (places != pictures && places != 0) {
    return invalid_argument(message({"[text ", index + 1, "] has ", places, " placeholders ",
                                     words.placeholder(), ", but ", pictures,
                                     " pictures were given; write one for each picture, or none, "
                                     "and they come first."}));
  }
  std::string text = places == 0 ? words.placed(prompt.text, pictures) : prompt.text;
  VKF_ASSIGN(const bool started, is_started(task, text));
  const bool leads = task.facts().images.kind == Kind::kLeading && pictures > 0;
  EncodeOptions options;
  options.special_tokens = started || leads ? SpecialTokens::kExclude : special_tokens;
  ImagePrompt made;
  int64_t features = 0;
  if (pictures > 0) {
    VKF_ASSIGN(const std::vector<PromptImages> images, read_pictures(task, prompt));
    std::vector<std::string> with;
    for (const PromptImages& image : images) {
      VKF_ASSIGN(const int64_t tokens,
                 task.model->family().image_tokens(image.height, image.width));
      features += tokens * (image.rows * image.columns + 1);
      with.push_back(words.expanded(image, tokens));
    }
    text = words.replaced(text, with);
    VKF_ASSIGN(made.images, join_prompt_images(images));
  }
  const std::string_view whole = text;
  auto encoding = task.tokenizer->encode({&whole, 1}, options);
  if (!encoding) return encoding.error().with_context("[text " + std::to_string(index + 1) + "]");
  made.encoding = std::move(*encoding);
  const std::vector<TokenId>& ids = made.encoding.ids;
  const auto own = std::count(ids.begin(), ids.end(), task.facts().images.token);
  if (own != features) {
    return invalid_file(message({"[text ", index + 1, "] has ", own, " image tokens ",
                                 "where its pictures make ", features,
                                 " features; the tokenizer must know the image token as a special "
                                 "token."}));
  }
  const auto count = static_cast<int64_t>(ids.size());
  if (count > task.token_limit()) {
    return invalid_argument(
        message({"[text ", index + 1, "] has ", count, " tokens, ", features,
                 " of them of its pictures, but the model takes at most ", task.token_limit(),
                 "; give fewer or smaller pictures, or a shorter text."}));
  }
  if (count == 0) {
    return invalid_argument(
        message({"[text ", index + 1, "] has no tokens; give a text that is not empty."}));
  }
  return made;
}

bool describes_pictures(const TaskModel& task) {
  const ModelFacts& facts = task.facts();
  return facts.kind == ModelKind::kEncoderDecoder && facts.source == SourceKind::kPictures &&
         facts.head == HeadKind::kLanguage;
}

Result<std::vector<TokenId>> description_beginning(const TaskModel& task, const std::string& text,
                                                   int64_t room) {
  if (text.empty()) return std::vector<TokenId>();
  const std::string_view whole = text;
  auto encoded = encode_task_text(task, {&whole, 1}, 0, room, SpecialTokens::kExclude);
  if (!encoded) return encoded.error().with_context("[prefix]");
  return std::move(encoded->ids);
}

Result<Tensor> described_pixels(const TaskModel& task, std::span<const Picture> pictures) {
  if (!task.pages) return task.pictures->process(pictures);
  std::vector<const RgbPicture*> shown;
  for (const Picture& picture : pictures) {
    VKF_CHECK(check_picture(&picture, shown.size()));
    shown.push_back(HandleAccess::impl(picture).get());
  }
  return task.pages->process(shown);
}

Result<ImagePrompt> make_description_prompt(const TaskModel& task,
                                            const PromptWithPictures& prompt) {
  if (prompt.pictures.size() != 1) {
    return invalid_argument(
        message({"[pictures] holds ", prompt.pictures.size(), " pictures, but a ",
                 task.facts().architecture, " describes one at a time; give one."}));
  }
  const Picture* picture = prompt.pictures[0];
  VKF_CHECK(check_picture(picture, 0));
  ImagePrompt made;
  // One token starts the decoder, and one at least is generated.
  VKF_ASSIGN(made.encoding.ids,
             description_beginning(task, prompt.text, task.facts().max_target - 2));
  VKF_ASSIGN(made.images["pixel_values"], described_pixels(task, {picture, 1}));
  return made;
}

}  // namespace vkformer
