// Examples of tasks over pictures.
#include <vkformer/depth.h>
#include <vkformer/detect.h>
#include <vkformer/segment.h>
#include <vkformer/tasks.h>

#include <cstdio>

#include "examples.h"

using vkformer::ModelSource;
using Pictures = std::vector<vkformer::Picture>;

namespace {

vkformer::Status show_labels(const Setting& setting, const Pictures& pictures) {
  const vkformer::Device& device = setting.device;
  const auto source = ModelSource::directory(setting.tasks + "/picture-labels");
  //! [PictureClassifier::load PictureClassifier::classify]
  // Prints the likeliest label of each picture.
  auto classifier = vkformer::PictureClassifier::load(device, source);
  if (!classifier) return classifier.error();
  const auto labels = classifier->classify(pictures, 1);
  if (!labels) return labels.error();
  for (const auto& best : *labels) {
    std::printf("%s %.3f\n", best.front().label.c_str(), best.front().score);
  }
  //! [end]

  const auto text_source = ModelSource::directory(setting.tasks + "/picture-texts");
  //! [PictureClassifier::zero_shot]
  // Chooses between labels of the caller, by a model that compares pictures with texts.
  auto matcher = vkformer::PictureClassifier::load(device, text_source);
  if (!matcher) return matcher.error();
  const auto matches = matcher->zero_shot(pictures, std::vector<std::string>{"animals", "a city"});
  if (!matches) return matches.error();
  std::printf("%s\n", matches->front().front().label.c_str());
  //! [end]
  return expect(matches->front().size() == 2, "both labels");
}

vkformer::Status show_texts(const Setting& setting, const Pictures& pictures) {
  const vkformer::Device& device = setting.device;
  const auto source = ModelSource::directory(setting.tasks + "/captions");
  //! [Captioner::load Captioner::caption]
  // Describes each picture in up to 8 tokens.
  auto captioner = vkformer::Captioner::load(device, source);
  if (!captioner) return captioner.error();
  vkformer::TextOptions options;
  options.max_new_tokens = 8;
  const auto captions = captioner->caption(pictures, options);
  if (!captions) return captions.error();
  for (const std::string& caption : *captions) std::puts(caption.c_str());
  //! [end]

  const auto prompt_source = ModelSource::directory(setting.tasks + "/prompts-llava");
  //! [TextGenerator::picture_placeholder TextGenerator::generate_with_pictures]
  // Asks a model about a picture.
  auto writer = vkformer::TextGenerator::load(device, prompt_source);
  if (!writer) return writer.error();
  const auto placeholder = writer->picture_placeholder();
  if (!placeholder) return placeholder.error();
  vkformer::PromptWithPictures prompt;
  prompt.text = *placeholder + " What is this?";
  prompt.pictures = {&pictures.front()};
  const auto answers = writer->generate_with_pictures({&prompt, 1}, options);
  if (!answers) return answers.error();
  std::puts(answers->front().front().text.c_str());
  //! [end]
  return expect(captions->size() == pictures.size(), "a caption of each picture");
}

vkformer::Status show_objects(const Setting& setting, const Pictures& pictures) {
  const vkformer::Device& device = setting.device;
  const auto source = ModelSource::directory(setting.tasks + "/objects");
  //! [ObjectDetector::load ObjectDetector::detect render_detections_png]
  // Prints the objects of a picture, and draws their boxes on it.
  auto detector = vkformer::ObjectDetector::load(device, source);
  if (!detector) return detector.error();
  const auto found = detector->detect({&pictures.front(), 1});
  if (!found) return found.error();
  for (const vkformer::Detection& object : found->front()) {
    std::printf("%s %.3f at %.0f, %.0f\n", object.label.c_str(), object.score, object.left,
                object.top);
  }
  const auto png = vkformer::render_detections_png(pictures.front(), found->front());
  if (!png) return png.error();
  //! [end]
  return expect(!png->empty(), "a PNG file");
}

vkformer::Status show_pixels(const Setting& setting, const Pictures& pictures) {
  const vkformer::Device& device = setting.device;
  const auto depth_source = ModelSource::directory(setting.tasks + "/depth");
  //! [DepthEstimator::load DepthEstimator::estimate render_depth_png]
  // Draws how near each pixel of a picture is.
  auto estimator = vkformer::DepthEstimator::load(device, depth_source);
  if (!estimator) return estimator.error();
  const auto depths = estimator->estimate({&pictures.front(), 1});
  if (!depths) return depths.error();
  const auto depth_png = vkformer::render_depth_png(depths->front());
  if (!depth_png) return depth_png.error();
  //! [end]

  const auto source = ModelSource::directory(setting.tasks + "/segments");
  //! [Segmenter::load Segmenter::segment render_masks_png]
  // Draws the mask of what the pixel 12, 3 is in.
  auto segmenter = vkformer::Segmenter::load(device, source);
  if (!segmenter) return segmenter.error();
  vkformer::MaskPrompt prompt;
  prompt.points = {{12, 3}};
  const auto masks = segmenter->segment(pictures.front(), {&prompt, 1});
  if (!masks) return masks.error();
  std::printf("the model expects a share of %.3f\n", masks->front().front().score);
  const auto mask_png = vkformer::render_masks_png(pictures.front(), masks->front());
  if (!mask_png) return mask_png.error();
  //! [end]
  return expect(!depth_png->empty() && !mask_png->empty(), "two PNG files");
}

}  // namespace

vkformer::Status show_picture_tasks(const Setting& setting) {
  Pictures pictures;
  auto picture = vkformer::Picture::load(setting.tasks + "/picture-0.png");
  if (!picture) return picture.error();
  pictures.push_back(*std::move(picture));
  for (const auto show : {show_labels, show_texts, show_objects, show_pixels}) {
    const auto shown = show(setting, pictures);
    if (!shown) return shown;
  }
  return {};
}
