//! The engines that are measured: ours, the `bm25` crate and tantivy, each built and asked as its own documentation does.
//!
//! Ours reads the tools as they are. The others take text, so they get what stands in the same fields: the words of the
//! name, the description, the names and descriptions of the parameters; making that text is not part of their times.

use bm25::{Language, SearchEngine, SearchEngineBuilder};
use tantivy::collector::TopDocs;
use tantivy::indexer::NoMergePolicy;
use tantivy::query::QueryParser;
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{
    Language as TokenizerLanguage, LowerCaser, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer,
};
use tantivy::{Index as TantivyIndex, Searcher, TantivyDocument};
use toolrack::core::lexical::Document;
use toolrack::core::matches::by_keywords;
use toolrack::core::ranking::{CatalogIndex, Part, search};

use crate::support::measure::Result;
use crate::tools::Text;

/// Tools that each engine finds per query: the default of `search_default_limit`.
pub(crate) const MATCHES: usize = 5;
/// Memory of tantivy's writer, more than any catalog here fills, so that an index is one segment.
const WRITER_BYTES: usize = 400 << 20;
/// Name of tantivy's analysis.
const TOKENIZER: &str = "english";
/// What a word in the name counts for in tantivy, as in our engine.
const NAME_BOOST: f32 = 3.0;

/// An engine with a catalog in it.
pub(crate) trait Engine {
    /// Numbers of the best tools, best first, at most [`MATCHES`] and those that the query names.
    fn find(&self, query: &str) -> Result<Vec<usize>>;

    /// Bytes of the index, where the engine tells.
    fn bytes(&self) -> Result<Option<usize>>;
}

#[derive(Debug)]
pub(crate) struct Ours {
    index: CatalogIndex,
    /// By meaning as well as by words.
    semantic: bool,
    /// The place of each tool by name, as the service gives it: equal scores are ordered by it.
    candidates: Vec<u32>,
    /// The tool at each place.
    tools: Vec<usize>,
}

impl Ours {
    pub(crate) fn build(tools: &[Text], semantic: bool) -> Result<Self> {
        let documents = tools.iter().map(|tool| Document {
            group: &tool.group,
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
            aliases: &[],
        });
        let index =
            if semantic { CatalogIndex::build(documents) } else { CatalogIndex::of_words(documents) };
        let mut by_name: Vec<usize> = (0..tools.len()).collect();
        by_name.sort_by_key(|&number| (&tools[number].name, &tools[number].group));
        let mut candidates = vec![0; tools.len()];
        for (place, &number) in (0..).zip(&by_name) {
            candidates[number] = place;
        }
        Ok(Self { index, semantic, candidates, tools: by_name })
    }
}

impl Engine for Ours {
    fn find(&self, query: &str) -> Result<Vec<usize>> {
        let parts = [Part { index: &self.index, candidates: &self.candidates }];
        // All that the service does for the words of a query: with confidence and floor.
        let outcome = search(&parts, self.candidates.len(), query, MATCHES, self.semantic);
        std::hint::black_box(by_keywords(&outcome));
        Ok(outcome.hits.iter().map(|hit| self.tools[hit.candidate as usize]).collect())
    }

    fn bytes(&self) -> Result<Option<usize>> {
        Ok(Some(self.index.bytes()))
    }
}

/// The crate's search engine with its default tokenizer: English stems, without stop words.
pub(crate) struct Bm25(SearchEngine<u32>);

impl Bm25 {
    pub(crate) fn build(tools: &[Text]) -> Result<Self> {
        let corpus =
            tools.iter().map(|tool| format!("{} {} {}", tool.words, tool.description, tool.arguments));
        Ok(Self(SearchEngineBuilder::<u32>::with_corpus(Language::English, corpus).build()))
    }
}

impl Engine for Bm25 {
    fn find(&self, query: &str) -> Result<Vec<usize>> {
        Ok(self.0.search(query, MATCHES).iter().map(|result| result.document.id as usize).collect())
    }

    fn bytes(&self) -> Result<Option<usize>> {
        Ok(None)
    }
}

/// An index in memory with English stems, without stop words, three fields, no positions.
pub(crate) struct Tantivy {
    searcher: Searcher,
    parser: QueryParser,
}

impl Tantivy {
    pub(crate) fn build(tools: &[Text]) -> Result<Self> {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(TOKENIZER)
            .set_index_option(IndexRecordOption::WithFreqs);
        let options = TextOptions::default().set_indexing_options(indexing);
        let fields: [Field; 3] =
            ["name", "description", "arguments"].map(|name| schema.add_text_field(name, options.clone()));
        let index = TantivyIndex::create_in_ram(schema.build());
        let stop_words = StopWordFilter::new(TokenizerLanguage::English).ok_or("no stop words of English")?;
        let tokenizer = TextAnalyzer::builder(SimpleTokenizer::default())
            .filter(LowerCaser)
            .filter(stop_words)
            .filter(Stemmer::new(TokenizerLanguage::English));
        index.tokenizers().register(TOKENIZER, tokenizer.build());
        let mut writer = index.writer_with_num_threads::<TantivyDocument>(1, WRITER_BYTES)?;
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for tool in tools {
            let mut document = TantivyDocument::default();
            for (field, text) in fields.into_iter().zip([&tool.words, &tool.description, &tool.arguments]) {
                document.add_text(field, text);
            }
            writer.add_document(document)?;
        }
        writer.commit()?;
        writer.wait_merging_threads()?;
        let searcher = index.reader()?.searcher();
        if searcher.segment_readers().len() > 1 {
            return Err(
                "tantivy made more than one segment, whose documents are not numbered as the tools are"
                    .into(),
            );
        }
        let mut parser = QueryParser::for_index(&index, fields.to_vec());
        parser.set_field_boost(fields[0], NAME_BOOST);
        Ok(Self { searcher, parser })
    }
}

impl Engine for Tantivy {
    fn find(&self, query: &str) -> Result<Vec<usize>> {
        // Requests are no query language.
        let words: String = query.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
        let (query, _) = self.parser.parse_query_lenient(&words.to_lowercase());
        let found = self.searcher.search(&query, &TopDocs::with_limit(MATCHES).order_by_score())?;
        Ok(found.iter().map(|(_, address)| address.doc_id as usize).collect())
    }

    fn bytes(&self) -> Result<Option<usize>> {
        Ok(Some(usize::try_from(self.searcher.space_usage()?.total().get_bytes())?))
    }
}
