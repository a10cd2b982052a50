//! Invoices: a key and 64 fields, of which 26 are filled; some 740 bytes of JSON, 350 of CSV.

use super::table::{Member, Rows, Values};
use super::users::pick;

pub(crate) const INVOICES: Rows = Rows {
    name: "invoices",
    schema: "key text(16) not null, buyerId text(40), version text(5), number text(20), \
             originalReference text(20), supplierId text(40), irbmIdentifier text(20), \
             source text(8), createdBy text(25), updatedBy text(25), irbmLongId text(40), \
             originalReferenceNumber text(15), batchNumber text(12), submissionUid text(36), \
             submittedBy text(25), taxExemptionReason text(20), \
             requestForRejectionReason text(20), cancellationReason text(20), \
             approvedBy text(25), approvalRemarks text(15), transactionCodeId text(8), \
             productCodeId text(8), cancellationSource text(10), internalCancellationBy text(10), \
             irbmSubmissionResponse text(10), invoiceDate timestamp, createdAt timestamp, \
             updatedAt timestamp, requestForRejectionDate timestamp, cancellationDate timestamp, \
             submissionDate timestamp, validationDate timestamp, approvalDate timestamp, \
             billingPeriodStart timestamp, billingPeriodEnd timestamp, \
             internalCancellationDate timestamp, status text(12), irbmStatus text(12), \
             currencyCode text(4), invoiceType text(15), frequency text(10), consolidated bool, \
             pdfSent bool, exchangeRate f64, totalExcludingTax f64, totalIncludingTax f64, \
             totalPayableAmount f64, totalNetAmount f64, totalDiscountAmount f64, totalFee f64, \
             totalTaxAmount f64, roundingAmount f64, amountExemptedFromTax f64, \
             invoiceAdditionalDiscountAmount f64, invoiceAdditionalFeeAmount f64, \
             totalSalesTaxable f64, totalSalesTaxAmount f64, totalServiceTaxable f64, \
             totalServiceTaxAmount f64, totalTourismTaxable f64, totalTourismTaxAmount f64, \
             totalHighValueTaxable f64, totalHighValueTaxAmount f64, totalLowValueTaxable f64, \
             totalLowValueTaxAmount f64, primary key (key)",
    values,
    number: "totalExcludingTax",
    number_of: |i| 100 + i % 49_900,
};

fn values(i: u64) -> Values {
    let day = i % 366 + 1;
    let (month, day) = ((day / 31 + 1).min(12), day % 28 + 1);
    let at = |hour: &str| format!("2024-{month:02}-{day:02} {hour}");
    let text = |name, texts: &'static [&str]| Member::text(name, pick(texts, i).to_owned());
    let hundredths = (100 + i % 49_900) * 100;
    let money = |name, cents: u64| Member::text(name, format!("{:?}", cents as f64 / 100.0));
    let tax = hundredths * 6 / 100;
    let hash = |n: u64| n & 0xffff_ffff;
    vec![
        Member::text("key", format!("INV-{i:07}")),
        Member::text("buyerId", format!("BUY-{:032x}", hash(i % 500 * 1_234_567_891))),
        Member::text("version", "1.0".to_owned()),
        Member::text("number", format!("INV-2026-{i:07}")),
        Member::text("supplierId", format!("SUP-{:032x}", hash(i % 100 * 2_654_435_761))),
        text("source", &["API", "PORTAL", "BATCH", "IMPORT"]),
        Member::text("batchNumber", format!("BATCH-{:04}", i / 1000)),
        Member::text("invoiceDate", at("00:00:00")),
        Member::text("createdAt", at("00:00:00")),
        Member::text("updatedAt", at("01:00:00")),
        Member::text("submissionDate", at("00:30:00")),
        Member::text("validationDate", at("01:00:00")),
        text("status", &["DRAFT", "PENDING", "APPROVED", "REJECTED", "CANCELLED"]),
        text("irbmStatus", &["PENDING", "VALID", "INVALID", "CANCELLED"]),
        text("currencyCode", &["MYR", "USD", "SGD", "EUR", "GBP"]),
        text("invoiceType", &["STANDARD", "CREDIT_NOTE", "DEBIT_NOTE", "REFUND", "SELF_BILLED"]),
        text("frequency", &["MONTHLY", "QUARTERLY", "YEARLY", "DAILY", "WEEKLY"]),
        Member::bare("consolidated", i.is_multiple_of(7).to_string()),
        Member::bare("pdfSent", (!i.is_multiple_of(3)).to_string()),
        Member::bare("exchangeRate", "1.0".to_owned()),
        money("totalExcludingTax", hundredths),
        money("totalIncludingTax", hundredths + tax),
        money("totalPayableAmount", hundredths + tax),
        money("totalNetAmount", hundredths),
        money("totalTaxAmount", tax),
        money("totalSalesTaxable", hundredths),
        money("totalSalesTaxAmount", tax),
    ]
}
