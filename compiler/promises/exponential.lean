/-! ## Exponentiated gradient

Hoeffding's inequality with a factor `1 / 2 + 2 ρ / 9` for steps with `η G ≤ ρ ≤ 1`, and the sum of the weights. -/

theorem exp_le_quadratic {z ρ : ℝ} (hz : |z| ≤ ρ) (hρ : ρ ≤ 1) :
    Real.exp z ≤ 1 + z + (1 / 2 + 2 * ρ / 9) * z ^ 2 := by
  have h := (abs_le.1 (Real.exp_bound (hz.trans hρ) (n := 3) (by norm_num))).2
  norm_num [sum_range_succ, Nat.factorial] at h
  have cube : |z| ^ 3 ≤ ρ * z ^ 2 := by
    have e : |z| ^ 3 = |z| * z ^ 2 := by rw [pow_succ', sq_abs]
    rw [e]
    exact mul_le_mul_of_nonneg_right hz (sq_nonneg z)
  linarith

theorem mixture_le {k : ℕ} (p l : Fin k → ℝ) (hp : ∀ i, 0 ≤ p i) (h1 : ∑ i, p i = 1) {η G : ℝ}
    (hη : 0 ≤ η) (hl : ∀ i, |l i| ≤ G) (hρ : η * G ≤ 1) :
    ∑ i, p i * Real.exp (-(η * l i))
      ≤ Real.exp (-(η * ∑ i, p i * l i) + (1 / 2 + 2 * (η * G) / 9) * (η * G) ^ 2) := by
  have size : ∀ i, |-(η * l i)| ≤ η * G := fun i => by
    rw [abs_neg, abs_mul, abs_of_nonneg hη]
    exact mul_le_mul_of_nonneg_left (hl i) hη
  have nonneg : ∀ i, 0 ≤ η * G := fun i => (abs_nonneg _).trans (size i)
  have each : ∀ i ∈ univ, p i * Real.exp (-(η * l i))
      ≤ p i * (1 - η * l i + (1 / 2 + 2 * (η * G) / 9) * (η * G) ^ 2) := fun i _ => by
    refine mul_le_mul_of_nonneg_left ?_ (hp i)
    have h := exp_le_quadratic (size i) hρ
    have sq : (-(η * l i)) ^ 2 ≤ (η * G) ^ 2 := by
      rw [← sq_abs]
      exact pow_le_pow_left₀ (abs_nonneg _) (size i) 2
    have factor : 0 ≤ 1 / 2 + 2 * (η * G) / 9 := by
      have := nonneg i
      positivity
    have := mul_le_mul_of_nonneg_left sq factor
    linarith
  have total : ∑ i, p i * (1 - η * l i + (1 / 2 + 2 * (η * G) / 9) * (η * G) ^ 2)
      = (∑ i, p i) * (1 + (1 / 2 + 2 * (η * G) / 9) * (η * G) ^ 2) - η * ∑ i, p i * l i := by
    rw [sum_mul, mul_sum, ← sum_sub_distrib]
    exact sum_congr rfl fun i _ => by ring
  have above := Real.add_one_le_exp (-(η * ∑ i, p i * l i) + (1 / 2 + 2 * (η * G) / 9) * (η * G) ^ 2)
  have summed := sum_le_sum each
  rw [total, h1] at summed
  linarith

/-- The regret of weights `w` that begin at one, against each entry. -/
theorem regret_of_weights {k : ℕ} {η : ℝ} (w l x : ℕ → Fin k → ℝ) (hw0 : ∀ i, w 0 i = 1)
    (hw : ∀ t i, w (t + 1) i = w t i * Real.exp (-(η * l t i)))
    (hx : ∀ t i, x t i = w t i / ∑ j, w t j) {G L : ℝ} (hη : 0 < η) (hl : ∀ t i, |l t i| ≤ G)
    (hρ : η * G ≤ 1) (hL : (k : ℝ) ≤ Real.exp L) (n : ℕ) (i : Fin k) :
    η * (∑ t ∈ range n, ∑ j, x t j * l t j - ∑ t ∈ range n, l t i)
      ≤ L + n * ((1 / 2 + 2 * (η * G) / 9) * (η * G) ^ 2) := by
  have pos : ∀ t j, 0 < w t j := fun t => by
    induction t with
    | zero => intro j; rw [hw0 j]; exact one_pos
    | succ t ih => intro j; rw [hw t j]; exact mul_pos (ih j) (Real.exp_pos _)
  have all : ∀ t, 0 < ∑ j, w t j := fun t => sum_pos (fun j _ => pos t j) ⟨i, mem_univ i⟩
  have mixed : ∀ t, 0 ≤ ∑ j, w t j := fun t => (all t).le
  have one : ∀ t, ∑ j, x t j = 1 := fun t => by
    simp only [hx t]
    rw [← sum_div]
    exact div_self (all t).ne'
  have nonneg : ∀ t j, 0 ≤ x t j := fun t j => by rw [hx t j]; exact div_nonneg (pos t j).le (mixed t)
  have own : ∀ n, w n i = Real.exp (-(η * ∑ t ∈ range n, l t i)) := fun n => by
    induction n with
    | zero => simp [hw0 i]
    | succ n ih =>
      rw [hw n i, ih, sum_range_succ, ← Real.exp_add]
      congr 1
      ring
  have grows : ∀ n : ℕ, ∑ j, w n j ≤ k * Real.exp (-(η * ∑ t ∈ range n, ∑ j, x t j * l t j)
      + n * ((1 / 2 + 2 * (η * G) / 9) * (η * G) ^ 2)) := fun n => by
    induction n with
    | zero => simp [hw0]
    | succ n ih =>
      have next : ∑ j, w (n + 1) j = (∑ j, w n j) * ∑ j, x n j * Real.exp (-(η * l n j)) := by
        rw [mul_sum]
        refine sum_congr rfl fun j _ => ?_
        rw [hw n j, hx n j]
        have := (all n).ne'
        field_simp
      rw [next]
      refine (mul_le_mul ih (mixture_le (x n) (l n) (nonneg n) (one n) hη.le (hl n) hρ)
        (sum_nonneg fun j _ => mul_nonneg (nonneg n j) (Real.exp_pos _).le)
        (mul_nonneg (Nat.cast_nonneg k) (Real.exp_pos _).le)).trans (le_of_eq ?_)
      rw [mul_assoc, ← Real.exp_add, sum_range_succ]
      congr 2
      push_cast
      ring
  have less : Real.exp (-(η * ∑ t ∈ range n, l t i)) ≤ Real.exp (L + (-(η * ∑ t ∈ range n, ∑ j, x t j * l t j)
      + n * ((1 / 2 + 2 * (η * G) / 9) * (η * G) ^ 2))) := by
    rw [← own n, Real.exp_add]
    exact ((single_le_sum (f := w n) (fun j _ => (pos n j).le) (mem_univ i)).trans (grows n)).trans
      (mul_le_mul_of_nonneg_right hL (Real.exp_pos _).le)
  have := Real.exp_le_exp.1 less
  linarith
